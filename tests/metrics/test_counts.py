"""Claims about counting: a published table's text, and answers one at a time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.metrics.counts import CountRow, ModelCounts, Tally, counts_of_rows, rows_of_csv
from millstream.metrics.millstone import CASES, STANCES

PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"
HEADER = "issue,issue_stance,count,case,model\n"
Answer = tuple[str, float | None, str, str, str, int, int]

answers = st.lists(
    st.tuples(
        st.sampled_from(["x/a", "x/b"]),
        st.sampled_from([None, 0, 0.5]),
        st.sampled_from(["drones", "US-penny", "Olympics"]),
        st.sampled_from(CASES),
        st.sampled_from(STANCES),
        st.integers(1, 6),
        st.sampled_from([0, 1, 2, 14]),
    ),
    max_size=60,
)


def tallied(found: list[Answer]) -> list[ModelCounts]:
    tally = Tally()
    for answer in found:
        tally.add(*answer)
    return tally.models()


def test_the_published_table_is_read_whole() -> None:
    [counts] = counts_of_rows(rows_of_csv(PUBLISHED.read_text()))
    assert counts.model == "gpt-4o"
    assert len(counts.issues) == 10
    assert counts.pooled[counts.issues.index("drones"), 0].tolist() == [5, 58, 27]
    assert counts.pooled.sum(axis=-1).tolist() == [[90] + [180] * 5] * 10


def test_a_cell_that_is_left_out_is_0_and_one_given_twice_is_refused() -> None:
    row = CountRow("m", "drones", "balanced", "con", 4)
    assert counts_of_rows([row])[0].pooled.sum() == 4
    with pytest.raises(ValueError, match=r"m, drones, balanced, con stand there twice \(4 and 5\)"):
        counts_of_rows([row, row._replace(answers=5)])


def test_a_table_may_name_the_cases_as_we_do_and_start_with_a_byte_order_mark() -> None:
    text = "\ufeffmodel,case,issue,issue_stance,count\nm,clear-con,drones,other,7\n"
    assert rows_of_csv(text) == [CountRow("m", "drones", "clear-con", "other", 7)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lack the column issue, issue_stance, count, case, model"),
        ("issue,count,case,model\n", "lack the column issue_stance"),
        (HEADER + "drones,pro,5,neither,m\ndrones,pro,5\n", "line 3: too few values"),
        (HEADER + "drones,pro,5,50pro,m\n", "line 2: case '50pro' is unknown; allowed are neither"),
        (HEADER + "drones,maybe,5,neither,m\n", "line 2: stance 'maybe' is unknown; allowed are pro, con, other"),
        (HEADER + "drones,pro,-5,neither,m\n", "line 2: count '-5' must be a whole number"),
        (HEADER + "drones,pro,5.5,neither,m\n", "line 2: count '5.5' must be a whole number"),
        (HEADER + "drones,pro,٥,neither,m\n", "line 2: count '٥' must be a whole number"),
    ],
)
def test_a_bad_table_is_refused_with_its_line_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        rows_of_csv(text)


@given(answers)
def test_a_tally_holds_every_answer_in_its_own_cell(found: list[Answer]) -> None:
    for counts in tallied(found):
        name, _, temperature = counts.model.partition(" @ ")
        mine = [a for a in found if a[0] == name and (not temperature or shown(a[1]) == temperature)]
        assert counts.units is not None
        assert counts.units.sum() == counts.pooled.sum() == len(mine)
        assert np.array_equal(counts.units.sum(axis=(1, 2)), counts.pooled)
        templates = sorted({a[5] for a in found})
        trials = sorted({a[6] for a in found})
        for answer in mine:
            _, _, issue, case, stance, template, trial = answer
            place = (counts.issues.index(issue), templates.index(template), trials.index(trial))
            cell = (*place, CASES.index(case), STANCES.index(stance))
            assert counts.units[cell] == sum(a[2:] == answer[2:] for a in mine)


@given(answers, st.randoms())
def test_the_order_of_the_answers_makes_no_difference(found: list[Answer], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for one, other in zip(tallied(found), tallied(shuffled), strict=True):
        assert (one.model, one.issues) == (other.model, other.issues)
        assert np.array_equal(one.units, other.units)  # type: ignore[arg-type]


def shown(temperature: float | None) -> str:
    return "default" if temperature is None else f"{temperature:g}"


def test_a_model_is_named_with_its_temperature_only_where_there_are_several() -> None:
    rest = ("drones", "baseline", "pro", 1, 0)
    asked: list[tuple[str, float | None]] = [("x/a", 0.5), ("x/b", None), ("x/b", 0.0), ("x/b", 0.7), ("x/b", 0)]
    names = [counts.model for counts in tallied([(model, temperature, *rest) for model, temperature in asked])]
    assert names == ["x/a", "x/b @ 0", "x/b @ 0.7", "x/b @ default"]


def test_refusals_and_disagreements_are_kept_where_they_were_noted() -> None:
    tally = Tally()
    for issue in ("drones", "Olympics"):
        tally.add("x/a", None, issue, "baseline", "other", 1, 0)
        tally.add("x/b", None, issue, "baseline", "other", 1, 0)
    tally.count_refusal("x/a", None, "drones")
    tally.count_disagreements("x/a", None, 0)
    with_notes, without = tally.models()
    assert (with_notes.issues, with_notes.refused, with_notes.disagreements) == (("Olympics", "drones"), (0, 1), 0)
    assert (without.refused, without.disagreements) == ((0, 0), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: "75pro"}, "case '75pro' is unknown; allowed are baseline"),
        ({4: "A"}, "stance 'A' is unknown; allowed are pro, con, other"),
        ({5: 7}, r"template \(7\) must be 1 to 6"),
        ({5: 0}, r"template \(0\) must be 1 to 6"),
        ({6: -1}, r"trial \(-1\) must be >= 0"),
    ],
)
def test_an_answer_outside_the_grid_is_refused_and_not_counted(change: dict[int, object], message: str) -> None:
    tally = Tally()
    tally.add("x/a", None, "drones", "baseline", "pro", 1, 0)
    answer: list[object] = ["x/a", None, "drones", "baseline", "pro", 1, 0]
    for place, value in change.items():
        answer[place] = value
    with pytest.raises(ValueError, match=message):
        tally.add(*answer)  # type: ignore[arg-type]
    assert repr(tally) == "<Tally [Models: 1, Issues: 1, Answers: 1]>"


def test_memory_grows_with_the_grid_and_not_with_the_answers() -> None:
    tally = Tally()
    tracemalloc.start()
    try:
        for trial in range(15):
            tally.add("x/a", None, "drones", "baseline", "pro", 1, trial)
        few = tracemalloc.get_traced_memory()[0]
        for repeat in range(20_000):
            tally.add("x/a", None, "drones", "baseline", "pro", 1, repeat % 15)
        many = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert many - few < 2_000
    assert tally.models()[0].pooled.sum() == 20_015
