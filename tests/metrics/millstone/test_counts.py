"""Claims about counting: a published table's text, and answers one at a time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tallies import add_answer

from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerTally
from millstream.metrics.millstone.counts import CountRow, ModelCounts, counts_of, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.openness import CASES, STANCES
from millstream.report.csv_files import csv_of
from millstream.report.table import Column, Table

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
    tally = AnswerTally()
    for answer in found:
        add_answer(tally, *answer)
    return [counts_of(answers) for answers in tally.models()]


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


@pytest.mark.parametrize("name", ["=1+1", "+a", "-b", "@c", "＝d", "plain", "'quoted'", "it's"])
def test_a_name_that_a_report_protected_from_spreadsheets_is_read_as_it_was(name: str) -> None:
    columns = [Column(column, "") for column in ("issue", "issue_stance", "count", "case", "model")]
    written = csv_of(Table("counts", "", "", tuple(columns), ((name, "pro", 5, "baseline", name),)))
    assert rows_of_csv(written.decode()) == [CountRow(name, name, "baseline", "pro", 5)]


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
        assert counts.of_templates is not None
        assert counts.of_templates.sum() == counts.pooled.sum() == len(mine)
        assert np.array_equal(counts.of_templates.sum(axis=1), counts.pooled)
        templates = sorted({a[5] for a in mine})
        for answer in mine:
            _, _, issue, case, stance, template, _ = answer
            place = (counts.issues.index(issue), templates.index(template))
            cell = (*place, CASES.index(case), STANCES.index(stance))
            assert counts.of_templates[cell] == sum(a[2:6] == answer[2:6] for a in mine)


@given(answers, st.randoms())
def test_the_order_of_the_answers_makes_no_difference(found: list[Answer], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for one, other in zip(tallied(found), tallied(shuffled), strict=True):
        assert (one.model, one.issues) == (other.model, other.issues)
        assert np.array_equal(one.of_templates, other.of_templates)  # type: ignore[arg-type]


def shown(temperature: float | None) -> str:
    return "default" if temperature is None else f"{temperature:g}"


def test_a_model_is_named_with_its_temperature_only_where_there_are_several() -> None:
    rest = ("drones", "baseline", "pro", 1, 0)
    asked: list[tuple[str, float | None]] = [("x/a", 0.5), ("x/b", None), ("x/b", 0.0), ("x/b", 0.7), ("x/b", 0)]
    names = [counts.model for counts in tallied([(model, temperature, *rest) for model, temperature in asked])]
    assert names == ["x/a", "x/b @ 0", "x/b @ 0.7", "x/b @ default"]


def test_refusals_are_counted_by_issue_and_case_and_disagreements_where_there_is_a_text() -> None:
    tally = AnswerTally()
    for issue in ("drones", "Olympics"):
        tally.add(Pair("x/a", None), issue, 1, "balanced-2", 0, ("other", None, None), refused=issue == "drones")
    tally.add(Pair("x/a", None), "drones", 2, "baseline", 0, ("pro", "pro", "con"))
    tally.add(Pair("x/a", None), "drones", 3, "baseline", 0, ("pro", "pro", "pro"))
    counts = counts_of(tally.models()[0])
    assert counts.refused is not None
    assert counts.refused.tolist() == [[0] * 6, [0, 0, 0, 0, 0, 1]]
    assert counts.disagreements == 1


def test_a_reading_is_counted_by_its_own_stances_and_without_a_text_by_what_was_recorded() -> None:
    tally = AnswerTally()
    tally.add(Pair("x/a", None), "drones", 1, "baseline", 0, ("pro", "con", "other"))
    tally.add(Pair("x/a", None), "drones", 1, "baseline", 1, ("pro", None, None))
    answers = tally.models()[0]
    assert counts_of(answers).pooled[0, 0].tolist() == [2, 0, 0]
    assert counts_of(answers, "paper").pooled[0, 0].tolist() == [1, 1, 0]
    assert counts_of(answers, "careful").pooled[0, 0].tolist() == [1, 0, 1]


def test_an_answer_takes_some_thirteen_bytes() -> None:
    tally = AnswerTally()
    tracemalloc.start()
    try:
        for trial in range(15):
            add_answer(tally, "x/a", None, "drones", "baseline", "pro", 1, trial)
        few = tracemalloc.get_traced_memory()[0]
        for repeat in range(20_000):
            add_answer(tally, "x/a", None, "drones", "baseline", "pro", 1, repeat % 15)
        many = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert many - few < 20_000 * 13 * 1.2
    assert counts_of(tally.models()[0]).pooled.sum() == 20_015


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["drones", "Olympics"]),
            st.integers(1, 6),
            st.sampled_from(["baseline", "balanced-2"]),
            st.integers(0, 2),
        ),
        max_size=30,
    )
)
def test_each_answer_that_stands_there_twice_is_named_once(ids: list[tuple[str, int, str, int]]) -> None:
    tally = AnswerTally()
    for issue, template, config, trial in ids:
        tally.add(Pair("x/a", None), issue, template, config, trial, ("pro", None, None))
    twice = sorted("/".join(map(str, each)) for each in set(ids) if ids.count(each) > 1)
    assert sorted(name for answers in tally.models() for name in answers.repeated()) == twice
    assert repr(tally) == (
        f"<AnswerTally [Models: {len(ids) > 0:d}, Issues: {len({each[0] for each in ids})}, Answers: {len(ids)}]>"
    )
