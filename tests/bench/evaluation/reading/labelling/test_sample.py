"""The sample that a person labels: which answers are in it, and how they are read from the records."""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.evaluation.door.defect import BenchmarkDefect
from millstream.bench.evaluation.door.kept_answer import Key, key_of
from millstream.bench.evaluation.door.label import Label, LabelChoice, Labeller
from millstream.bench.evaluation.door.record import AnswerRecord
from millstream.bench.evaluation.reading.labelling.sample import AnswerFile, Stratum, answers_of, draw, find
from millstream.bench.evaluation.running.journals import RecordError
from millstream.engine.fault import DamagedJournal
from millstream.engine.pairs import Pair
from millstream.engine.runs.journal import sealed


class Answer(AnswerRecord, frozen=True, kw_only=True):
    id: str
    model: str


def answer(number: int, model: str = "lab/x", temperature: float | None = None, text: str = "position <<A>>") -> Answer:
    return Answer(id=f"tea/1/baseline/{number}", model=model, temperature=temperature, text=text)


def several_at(model: str, size: int) -> list[Answer]:
    return [answer(number, model) for number in range(size)]


def several(**sizes: int) -> list[Answer]:
    return [one for name, size in sizes.items() for one in several_at(f"lab/{name}", size)]


def by_model(answers: list[Answer]) -> dict[str, int]:
    return dict(Counter(one.model for one in answers))


@given(st.integers(0, 10**9), st.integers(1, 40), st.randoms(use_true_random=False))
def test_the_sample_is_a_matter_of_answers_and_seed_and_not_of_their_order(
    seed: int, size: int, order: random.Random
) -> None:
    every = several(a=20, b=5, c=1)
    shuffled = order.sample(every, len(every))
    drawn = draw(shuffled, size, seed)
    assert drawn == draw(every, size, seed)
    assert len(drawn) == len({key_of(one) for one in drawn}) == min(size, len(every))


def test_the_sample_is_pinned() -> None:
    # Another sample for the same folder and seed would orphan labels that people have given.
    ranks = {n: hashlib.sha256(f"0\nlab/x\nNone\ntea/1/baseline/{n}".encode()).digest() for n in range(1_000)}
    lowest = [493, 971, 786, 440, 104]
    assert sorted(ranks, key=lambda number: ranks[number])[:5] == lowest
    assert [one.id for one in draw(several_at("lab/x", 1_000), 5)] == [f"tea/1/baseline/{n}" for n in lowest]


def test_another_seed_draws_another_sample() -> None:
    every = several(x=1_000)
    first, second = ({key_of(one) for one in draw(every, 100, seed)} for seed in (0, 1))
    # Two independent samples of a tenth share a tenth.
    assert len(first & second) < 30


def test_it_is_spread_evenly_over_models_and_what_one_lacks_goes_to_the_others() -> None:
    assert by_model(draw(several(a=500, b=300, c=400), 60)) == {"lab/a": 20, "lab/b": 20, "lab/c": 20}
    assert by_model(draw(several(a=500, b=3, c=400), 61)) == {"lab/a": 29, "lab/b": 3, "lab/c": 29}
    assert sorted(by_model(draw(several(a=50, b=50, c=50), 100)).values()) == [33, 33, 34]


def test_temperatures_of_a_model_are_even_too() -> None:
    every = [answer(number, temperature=t) for t, size in ((None, 90), (0.0, 400), (1.0, 50)) for number in range(size)]
    assert Counter(one.temperature for one in draw(every, 90)) == {None: 30, 0.0: 30, 1.0: 30}


@given(st.integers(1, 60))
def test_whoever_stops_early_has_labelled_the_models_evenly(stop: int) -> None:
    counts = by_model(draw(several(a=50, b=80, c=60), 60)[:stop])
    assert max(counts.values()) - min(counts.get(f"lab/{name}", 0) for name in "abc") <= 1


def test_every_answer_is_as_likely_as_any_other() -> None:
    every = several(a=40)
    counts = Counter(one.id for seed in range(1_000) for one in draw(every, 10, seed))
    assert len(counts) == 40
    # Each is expected 250 times, with a standard deviation of 13.7.
    assert min(counts.values()) > 195 and max(counts.values()) < 305


def test_what_is_held_does_not_grow_with_the_records() -> None:
    def many() -> Iterator[Answer]:
        return (answer(number, f"lab/{number % 3}", text=f"{number:>1000}") for number in range(20_000))

    tracemalloc.start()
    try:
        drawn = draw(many(), 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(drawn) == 100
    # 3 x 100 answers of about 2 kB; the records are 30 MB.
    assert peak < 2_000_000


def test_an_answer_that_stands_there_twice_is_refused() -> None:
    twice = [*several(a=30), answer(7, "lab/a")]
    with pytest.raises(RecordError, match="id tea/1/baseline/7 of lab/a stands there twice: keep one"):
        draw(twice, 50)
    with pytest.raises(RecordError, match="stands there twice"):
        find(twice, [key_of(answer(7, "lab/a"))])


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"size \(0\) must be >= 1"):
        draw([], 0)


def test_answers_are_found_again_by_model_temperature_and_id() -> None:
    every = [answer(number, temperature=t) for t in (None, 0.5) for number in range(3)]
    keys = [
        Key(Pair("lab/x", 0.5), "tea/1/baseline/1"),
        Key(Pair("lab/x", None), "tea/1/baseline/2"),
        Key(Pair("lab/y", None), "z"),
    ]
    assert list(find(every, keys)) == [keys[1], keys[0]]
    assert find(every, keys)[keys[0]] == every[4]


def test_the_sample_is_even_over_the_labels_of_the_first_reading_within_each_model() -> None:
    # A tenth of each model's answers are read as rare: as many of them are drawn as there are, up to an even share.
    every = several(a=100, b=20)

    def stratum(one: Answer) -> Stratum | None:
        number = int(one.id.rpartition("/")[2])
        return None if number == 5 else Stratum(key_of(one).pair, "rare" if number % 10 == 0 else "often")

    drawn = draw(every, 20, 0, stratum)
    counts = Counter((one.model, (stratum(one) or Stratum(key_of(one).pair, ""))[1]) for one in drawn)
    assert counts == {("lab/a", "rare"): 5, ("lab/a", "often"): 5, ("lab/b", "rare"): 2, ("lab/b", "often"): 8}
    assert all(not one.id.endswith("/5") for one in draw(every, 120, 0, stratum))
    # A smaller sample is the beginning of a larger one.
    assert draw(every, 12, 0, stratum) == drawn[:12]


# From the file


def written(path: Path) -> Path:
    """A record of each kind: answers with a text and without, a refusal with a text and without, and a failure."""
    found = [
        ("ok", "position <<A>>"),
        ("ok", "It depends."),
        ("refused", "I can't say A."),
        ("refused", ""),
        ("timeout", None),
        ("ok", " \n"),
    ]
    lines = [
        json.dumps({"id": f"q{number}", "model": "lab/x", "temperature": 0.5, "status": status, "text": text}).encode()
        for number, (status, text) in enumerate(found)
    ]
    path.write_bytes(b"".join(sealed(line) for line in lines))
    return path


def test_only_answers_with_a_text_are_there_to_be_labelled(tmp_path: Path) -> None:
    found = list(answers_of(written(tmp_path / "records.jsonl"), Answer))
    assert [(one.text, one.status) for one in found] == [
        ("position <<A>>", "ok"),
        ("It depends.", "ok"),
        ("I can't say A.", "refused"),
    ]
    assert key_of(found[0]) == Key(Pair("lab/x", 0.5), "q0")


LEAST = {"id": "tea/1/baseline/0", "model": "lab/x", "text": "A"}


def test_records_of_another_program_need_no_newline_at_their_end(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{json.dumps(LEAST)}\n\n{json.dumps({**LEAST, 'id': 'tea/1/baseline/1'})}")
    assert [one.id for one in answers_of(path, Answer)] == ["tea/1/baseline/0", "tea/1/baseline/1"]


def test_failures_are_no_answers_even_where_another_program_writes_them_among_the_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({**LEAST, "status": status}) + "\n" for status in ("timeout", "ok", "empty")))
    assert [one.status for one in answers_of(path, Answer)] == ["ok"]


def test_what_a_kill_left_of_a_last_line_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "records.jsonl")
    whole = path.read_bytes()
    expected = list(answers_of(path, Answer))
    for cut in range(1, 60):
        path.write_bytes(whole + whole[:cut])
        assert list(answers_of(path, Answer)) == expected


def test_a_damaged_line_is_told_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path / "records.jsonl")
    path.write_bytes(path.read_bytes().replace(b"It depends.", b"It defends."))
    with pytest.raises(DamagedJournal, match="line 2 is damaged"):
        list(answers_of(path, Answer))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "line 2: Expected `object`"),
        ('{"id": "x"}', "line 2: Object missing required field"),
        ("{", "line 2: Input data was truncated"),
    ],
)
def test_a_line_that_is_no_record_is_told_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{json.dumps(LEAST)}\n{line}\n")
    with pytest.raises(RecordError, match=said):
        list(answers_of(path, Answer))


# With a benchmark's labels

CHOICES = (LabelChoice("Y", "yes"), LabelChoice("N", "no"))


def label_of(answer: Answer) -> Label | None:
    if answer.text == "It depends.":
        return None
    return Label(text=answer.text or "", choices=CHOICES, readings={"ours": "yes"})


def test_a_record_without_a_label_is_in_no_sample_and_leaves_its_place_to_another(tmp_path: Path) -> None:
    answers = AnswerFile(written(tmp_path / "records.jsonl"), Labeller(Answer, label_of), "Walks")
    for seed in range(8):
        assert {sampled.key.id for sampled in answers.draw(2, seed)} == {"q0", "q2"}
    keys = [Key(Pair("lab/x", 0.5), f"q{number}") for number in range(3)]
    assert list(answers.find(keys)) == [keys[0], keys[2]]
    assert answers.find(keys)[keys[2]].label.text == "I can't say A."


def test_what_is_wrong_with_a_benchmarks_labels_is_one_line_that_names_it(tmp_path: Path) -> None:
    path = written(tmp_path / "records.jsonl")

    def broken(answer: Answer) -> Label:
        return Label(text="", choices=[LabelChoice("S", "supportive")])

    with pytest.raises(BenchmarkDefect, match=r"Walks, record 'q\d': its code raised ValueError: a choice needs"):
        AnswerFile(path, Labeller(Answer, broken), "Walks").draw(2, 0)
    with pytest.raises(BenchmarkDefect, match=r"Walks: label\(\) must make a Label or None, it made 'yes'"):
        AnswerFile(path, Labeller(Answer, lambda answer: "yes"), "Walks").draw(2, 0)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("choices", "about", "said"),
    [
        ((), {}, "a label needs choices"),
        ((LabelChoice("Y", "yes"), LabelChoice("y", "no")), {}, "different letters and names, got Y"),
        ((LabelChoice("Y", "n"), LabelChoice("N", "no")), {}, "different letters and names, got Y"),
        (CHOICES, {"Text": "x"}, "can't have the name text"),
    ],
)
def test_labels_that_no_person_or_file_could_tell_apart_are_refused(
    choices: tuple[LabelChoice, ...], about: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Label(text="x", choices=choices, about=about)
