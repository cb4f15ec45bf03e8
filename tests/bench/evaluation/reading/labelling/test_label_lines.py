"""labels.jsonl: which line counts, what a kill or several processes leave, and labels whose answers have changed."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import msgspec
import pytest

from millstream.bench.evaluation.door.kept_answer import Key, Verdict
from millstream.bench.evaluation.door.label import Label, LabelChoice
from millstream.bench.evaluation.reading.labelling.label_lines import (
    RaterLabels,
    labels_that_count,
    last_sample,
    read_label_lines,
    usable_labels,
)
from millstream.bench.evaluation.reading.labelling.sample import SampleEntry
from millstream.configuration.errors import UsageError
from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.pairs import Pair
from millstream.engine.runs.journal import append_at_once

CHOICES = (LabelChoice("A"), LabelChoice("B"))
LINES_EACH = 50


def entry(number: int, text: str = "text") -> SampleEntry:
    return SampleEntry(Key(Pair("lab/x", 0.5), f"c/{number}"), Label(text=text, choices=CHOICES))


SAMPLE = [entry(number) for number in range(3)]


def labels_of(path: Path, rater: str = "ann", sample: list[SampleEntry] = SAMPLE) -> RaterLabels:
    return RaterLabels(path, rater, sample, (3, 7), labels_that_count(read_label_lines(path)))


def test_a_line_says_who_labelled_what_how_and_when(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    labels_of(path).set_label(0, Verdict("A", confidence=0.67))
    (line,) = (msgspec.json.decode(each) for each in path.read_bytes().splitlines())
    assert line.pop("labelled_at").endswith("+00:00") and line.pop("crc") > 0
    assert line == {
        "model": "lab/x",
        "temperature": 0.5,
        "effort": None,
        "id": "c/0",
        "rater": "ann",
        "label": "A",
        "certainty": 0.67,
        # echo -n text | sha256sum
        "text_sha256": "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1",
        "sample": 3,
        "seed": 7,
    }


def test_the_last_line_of_a_rater_about_an_answer_counts_and_null_takes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    ann, bob = labels_of(path), labels_of(path, "bob")
    ann.set_label(0, Verdict("A"))
    bob.set_label(0, Verdict("B"))
    ann.set_label(0, Verdict("B"))
    ann.set_label(1, Verdict("A"))
    ann.set_label(1, None)
    every = list(read_label_lines(path))
    assert len(every) == 5 and last_sample(every) == (3, 7)
    assert [(line.id, line.rater, line.label) for line in labels_that_count(every)] == [
        ("c/0", "bob", "B"),
        ("c/0", "ann", "B"),
    ]
    assert labels_of(path).by_key == {SAMPLE[0].key: Verdict("B")} == ann.by_key


def test_labels_that_are_there_already_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    given = [Verdict("A"), None, Verdict("B")]
    assert [labels_of(path).set_labels(given) for _ in range(3)] == [2, 0, 0]
    assert labels_of(path).set_labels([None, None, Verdict("B", confidence=1.0)]) == 1
    assert len(list(read_label_lines(path))) == 3


def _append(path: Path, rater: str) -> None:
    for number in range(LINES_EACH):
        labels_of(path, rater).set_label(number % 3, Verdict("AB"[number % 2]))


def test_several_processes_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    processes = [multiprocessing.get_context("fork").Process(target=_append, args=(path, name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    raters = [line.rater for line in read_label_lines(path)]
    assert {name: raters.count(name) for name in "abc"} == dict.fromkeys("abc", LINES_EACH)


def test_half_a_line_is_skipped_and_the_next_label_sets_it_aside(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    labels_of(path).set_label(0, Verdict("A"))
    whole = path.read_bytes()
    for cut in (1, 20, len(whole) - 1):
        path.write_bytes(whole + whole[:cut])
        assert [line.id for line in read_label_lines(path)] == ["c/0"]
        labels_of(path).set_label(1, Verdict("B"))
        assert [line.id for line in read_label_lines(path)] == ["c/0", "c/1"]
        assert (tmp_path / "labels.torn").read_bytes().endswith(whole[:cut] + b"\n")


def test_a_damaged_line_and_one_that_is_no_label_are_told_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    labels_of(path).set_labels([Verdict("A"), Verdict("B"), None])
    path.write_bytes(path.read_bytes().replace(b'"label":"B"', b'"label":"A"'))
    with pytest.raises(DamagedJournal, match="line 2 is damaged"):
        list(read_label_lines(path))
    path.write_text('{"model": "lab/x"}\n')
    with pytest.raises(UsageError, match="line 1: expected a label, got something else"):
        list(read_label_lines(path))


def test_a_place_that_cannot_be_written_is_a_local_fault(tmp_path: Path) -> None:
    with pytest.raises(LocalFault, match="can't be written"):
        labels_of(tmp_path / "nowhere/labels.jsonl").set_label(0, Verdict("A"))


def test_labels_of_answers_that_are_gone_or_have_changed_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    labels_of(path).set_labels([Verdict("A"), Verdict("B"), Verdict("A")])
    first = next(read_label_lines(path))
    append_at_once(path, [msgspec.json.encode(msgspec.structs.replace(first, rater="bob", label="C"))])
    now = [entry(0), entry(1, "another text")]
    found = usable_labels(labels_that_count(read_label_lines(path)), {each.key: each for each in now})
    assert found.raters == {"ann": {now[0].key: Verdict("A")}}
    assert (found.missing, found.changed, found.unknown) == (1, 1, 1)
    assert found.remarks[1] == "1 label is left out: the text of the answer has changed since"
    # The changed answer is asked for again.
    assert labels_of(path, sample=now).label(1) is None and labels_of(path, sample=now).labelled == 1
