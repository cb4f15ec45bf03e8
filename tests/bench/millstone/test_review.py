"""Claims about the sample that a person labels: whose it is, and what the labels are compared with."""

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
from msgspec import structs

from millstream.bench.millstone.dataset import Dataset
from millstream.bench.millstone.grid import Grid, calls
from millstream.bench.millstone.records import RecordError, row
from millstream.bench.millstone.review import (
    Answer,
    Key,
    Label,
    answers_of,
    compare,
    draw,
    find,
    questions_of,
    read_as,
)
from millstream.engine.call import Failure, Outcome, Reply
from millstream.engine.fault import DamagedJournal
from millstream.engine.journal import sealed
from millstream.metrics.stance import Letter


def answer(number: int, model: str = "lab/x", temperature: float | None = None, text: str = "position <<A>>") -> Answer:
    return Answer(
        id=f"tea/1/baseline/{number}", issue="tea", template=1, model=model, temperature=temperature, text=text
    )


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
    assert len(drawn) == len({one.key for one in drawn}) == min(size, len(every))


def test_the_sample_is_pinned() -> None:
    # Another sample for the same folder and seed would orphan labels that people have given.
    ranks = {n: hashlib.sha256(f"0\nlab/x\nNone\ntea/1/baseline/{n}".encode()).digest() for n in range(1_000)}
    lowest = [493, 971, 786, 440, 104]
    assert sorted(ranks, key=lambda number: ranks[number])[:5] == lowest
    assert [one.id for one in draw(several_at("lab/x", 1_000), 5)] == [f"tea/1/baseline/{n}" for n in lowest]


def test_another_seed_draws_another_sample() -> None:
    every = several(x=1_000)
    first, second = ({one.key for one in draw(every, 100, seed)} for seed in (0, 1))
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
        find(twice, [answer(7, "lab/a").key])


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"size \(0\) must be >= 1"):
        draw([], 0)


def test_answers_are_found_again_by_model_temperature_and_id() -> None:
    every = [answer(number, temperature=t) for t in (None, 0.5) for number in range(3)]
    keys = [Key("lab/x", 0.5, "tea/1/baseline/1"), Key("lab/x", None, "tea/1/baseline/2"), Key("lab/y", None, "z")]
    assert list(find(every, keys)) == [keys[1], keys[0]]
    assert find(every, keys)[keys[0]] == every[4]


# From the file


def written(tiny: Dataset, path: Path) -> Path:
    """A record of each kind: with a letter, without one, refused with a text and without, and a failure."""
    made = list(calls(Grid(tiny, trials=1), "openai/gpt-4o", temperature=0.5))
    outcomes = [
        Outcome(made[0], Reply("position <<A>>")),
        Outcome(made[1], Reply("It depends.")),
        Outcome(made[2], Reply("I can't say A.", refused=True)),
        Outcome(made[3], Reply("", refused=True)),
        Outcome(made[4], failure=Failure("timeout", "too late")),
        Outcome(made[5], Reply(" \n")),
    ]
    path.write_bytes(b"".join(sealed(row(outcome, "paper")) for outcome in outcomes))
    return path


def test_only_answers_with_a_text_are_there_to_be_labelled(tiny: Dataset, tmp_path: Path) -> None:
    found = list(answers_of(written(tiny, tmp_path / "records.jsonl")))
    assert [(one.text, one.letter, one.status) for one in found] == [
        ("position <<A>>", "A", "ok"),
        ("It depends.", None, "ok"),
        ("I can't say A.", None, "refused"),
    ]
    assert found[0].key == Key("openai/gpt-4o", 0.5, "bells/1/baseline/0")


LEAST = {"id": "tea/1/baseline/0", "issue": "tea", "template": 1, "model": "lab/x", "text": "A"}


def test_records_of_another_program_need_no_letter_and_no_newline_at_their_end(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{json.dumps(LEAST)}\n\n{json.dumps({**LEAST, 'id': 'tea/1/baseline/1'})}")
    assert [one.id for one in answers_of(path)] == ["tea/1/baseline/0", "tea/1/baseline/1"]


def test_failures_are_no_answers_even_where_another_program_writes_them_among_the_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({**LEAST, "status": status}) + "\n" for status in ("timeout", "ok", "empty")))
    assert [one.status for one in answers_of(path)] == ["ok"]


def test_what_a_kill_left_of_a_last_line_is_passed_over(tiny: Dataset, tmp_path: Path) -> None:
    path = written(tiny, tmp_path / "records.jsonl")
    whole = path.read_bytes()
    expected = list(answers_of(path))
    for cut in range(1, 60):
        path.write_bytes(whole + whole[:cut])
        assert list(answers_of(path)) == expected


def test_a_damaged_line_is_told_by_its_number(tiny: Dataset, tmp_path: Path) -> None:
    path = written(tiny, tmp_path / "records.jsonl")
    path.write_bytes(path.read_bytes().replace(b"It depends.", b"It defends."))
    with pytest.raises(DamagedJournal, match="line 2 is damaged"):
        list(answers_of(path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "line 2: Expected `object`"),
        ('{"id": "x"}', "line 2: Object missing required field"),
        (json.dumps({**LEAST, "template": 7}), "line 2: Expected `int` <= 6"),
        ("{", "line 2: Input data was truncated"),
    ],
)
def test_a_line_that_is_no_record_is_told_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{json.dumps(LEAST)}\n{line}\n")
    with pytest.raises(RecordError, match=said):
        list(answers_of(path))


def test_every_wording_is_found_by_issue_and_template(tiny: Dataset) -> None:
    found = questions_of(tiny)
    assert len(found) == 12
    assert found["bells", 4] == "Bells, wording 4: A or B?"


# Against the readings


def recorded_as(text: str, letter: Letter | None, status: str = "ok", number: int = 0, model: str = "lab/x") -> Answer:
    changes = {"id": f"tea/1/baseline/{number}", "model": model, "text": text, "letter": letter, "status": status}
    return structs.replace(answer(0), **changes)


def test_labels_are_compared_with_the_letter_of_the_record_and_with_the_other_reading() -> None:
    # The paper's reading finds an A in "position against"; the careful one takes it for no letter.
    odd = recorded_as("My position against it stands.", "A")
    plain = recorded_as("position <<B>>", "B", number=1)
    found = compare([(odd, "other"), (plain, "B")], "paper")
    assert list(found) == ["paper", "careful"]
    assert [found[reading].whole.agreed for reading in found] == [1, 2]
    # The rows are the person's.
    assert found["paper"].whole.labels == ("A", "B", "other")
    assert found["paper"].whole.table == ((0, 0, 0), (0, 1, 0), (1, 0, 0))


def test_the_letter_that_was_recorded_is_taken_as_it_stands() -> None:
    # As if a later version read the text otherwise: what counted for the scores is in the record.
    kept = recorded_as("position <<B>>", "A")
    assert [read_as(kept, reading, "careful") for reading in ("careful", "paper")] == ["A", "B"]


def test_a_refusal_names_no_letter_by_any_reading() -> None:
    refused = recorded_as("I can't answer A.", None, "refused")
    assert [read_as(refused, reading, "paper") for reading in ("paper", "careful")] == ["other", "other"]


def test_where_nothing_says_how_a_run_read_its_letters_are_a_reading_of_their_own() -> None:
    with_letter = recorded_as("position <<B>>", "B")
    found = compare([(with_letter, "B")], None)
    assert list(found) == ["recorded", "paper", "careful"]
    without = answer(1)
    found = compare([(with_letter, "B"), (without, "A")], None)
    assert list(found) == ["paper", "careful"]
    assert found["paper"].whole.agreed == 2
    # Where the run says how it read, a record without its letter is read so again.
    assert read_as(without, "paper", "paper") == "A"


def test_each_model_has_figures_of_its_own() -> None:
    labels: tuple[Label, ...] = ("A", "B", "A", "A", "A")
    answers = [recorded_as("A", "A", number=number, model=f"lab/{number % 2}") for number in range(5)]
    found = compare(list(zip(answers, labels, strict=True)), "paper")["paper"]
    assert {name: (one.count, one.agreed) for name, one in found.models.items()} == {"lab/0": (3, 3), "lab/1": (2, 1)}
    assert (found.whole.count, found.whole.agreed) == (5, 4)


def test_each_temperature_of_a_model_has_figures_of_its_own() -> None:
    labelled: list[tuple[Answer, Label]] = [(answer(0, temperature=t), "A") for t in (None, 0.0, 0.5)]
    assert list(compare(labelled, "paper")["paper"].models) == ["lab/x", "lab/x @ 0", "lab/x @ 0.5"]
