"""Claims about Chameleon's tables: they say what the scores say, beside what the paper prints."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev

import pytest
from chameleon_records import PERSONAS, STEADY, Persona, run_records, turn_record
from chameleon_run import panel_of, written_run

from millstream.bench.chameleon.report.panel import ConversationScores
from millstream.bench.chameleon.report.part import tables_and_figures
from millstream.bench.chameleon.report.published import published_rows
from millstream.metrics.chameleon.scores import scores
from millstream.report.csv_files import csv_of
from millstream.report.sections import PageContents
from millstream.report.table import PUBLISHED, Cell, Column, Table

KINDS = ("score", "srr", "confidence", "changes")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ConversationScores:
    return panel_of(written_run(tmp_path_factory.mktemp("run"), run_records(PERSONAS, conversations=8, turns=6)))


@pytest.fixture(scope="module")
def found(made: ConversationScores) -> PageContents:
    return tables_and_figures(made)


def table(found: PageContents, name: str) -> Table:
    [one] = [table for table in found.tables if table.name == name]
    return one


def own(found: PageContents, name: str) -> list[dict[str, Cell]]:
    return [row for row in table(found, name).records() if row.get("source") != PUBLISHED]


def published(found: PageContents, name: str) -> list[dict[str, Cell]]:
    return [row for row in table(found, name).records() if row.get("source") == PUBLISHED]


def number(cell: Cell) -> float:
    assert isinstance(cell, int | float)
    return float(cell)


def test_table_1_says_what_the_scores_say(made: ConversationScores, found: PageContents) -> None:
    models = scores(made.runs[0].traces)["models"]
    rows = own(found, "chameleon-table-1-scores")
    assert len(rows) == 10
    for row in rows[:-1]:
        entry = models[str(row["model"])][str(row["temperature"])]
        for kind in KINDS:
            assert (row[kind], row[f"{kind}_std"]) == (entry[kind]["mean"], entry[kind]["std"])
        assert [row["low"], row["high"]] == entry["score"]["ci95"]
        # The reason, and the single figures.
        reason, _, figures = str(row["interval"]).rpartition(": ")
        assert reason == entry["score"]["ci95_note"] == "no interval: fewer than 10 conversations (8)"
        assert fmean(map(float, figures.split(", "))) == pytest.approx(number(row["score"]), abs=0.001)
        assert row["conversations"] == entry["conversations"] == 8
    overall = rows[-1]
    assert overall["model"] == "Overall" and overall["low"] is None
    for kind in (*KINDS, "score_std", "changes_std"):
        assert overall[kind] == pytest.approx(fmean(number(row[kind]) for row in rows[:-1]))


def test_the_published_rows_stand_beside_with_the_remark(found: PageContents) -> None:
    rows = published(found, "chameleon-table-1-scores")
    assert len(rows) == 10 and rows[1]["model"] == "GPT-4o-mini" and rows[1]["score"] == 0.512
    assert "can't come from its eq. (2)" in table(found, "chameleon-table-1-scores").note
    assert any("can't come from its eq. (2)" in remark for remark in found.remarks)


def test_the_published_row_really_is_beyond_eq_2() -> None:
    # The mean of a root of squares is never below the root of the squared means.
    least = (((9.152 / 14) ** 2 + 0.797**2) / 3) ** 0.5
    assert round(least, 3) == 0.595 > 0.512


def test_the_published_overall_row_is_the_mean_of_the_nine_but_for_stance_changes() -> None:
    columns = [Column(name, name) for kind in KINDS for name in (kind, f"{kind}_std")]
    columns = [Column("model", ""), Column("temperature", ""), *columns]
    rows = published_rows("chameleon-table-1-scores", columns)
    means = [fmean(number(row[at]) for row in rows[:9]) for at in range(2, len(columns))]
    assert means[:6] == pytest.approx([number(cell) for cell in rows[9][2:8]], abs=0.0006)
    # What it prints for stance changes is not: 5.480 and 2.902.
    assert means[6:] == pytest.approx([5.487, 2.613], abs=0.0006)
    by_model = {name: [number(row[2]) for row in rows[:9] if row[0] == name] for name in {row[0] for row in rows[:9]}}
    spreads = {name: round(stdev(values), 4) for name, values in by_model.items()}
    assert spreads == {"Gemini-2.5-Flash": 0.0015, "GPT-4o-mini": 0.0012, "Llama-4-Maverick": 0.0035}


def test_the_published_domains_add_up_to_17_700_and_not_to_what_is_printed() -> None:
    columns = [Column("domain", ""), Column("conversations", ""), Column("turns", "")]
    rows = published_rows("chameleon-table-2-domains", columns)
    assert len(rows) == 13 and all(number(row[2]) == 15 * number(row[1]) for row in rows[:12])
    assert sum(number(row[1]) for row in rows[:12]) == number(rows[12][1]) == 1_180
    assert sum(number(row[2]) for row in rows[:12]) == 17_700 == number(rows[12][2]) - 70


def test_table_2_counts_conversations_and_questions_once(found: PageContents) -> None:
    rows = [row for row in own(found, "chameleon-table-2-domains") if row["model"] is None]
    assert [(row["domain"], row["conversations"], row["turns"]) for row in rows] == [
        *((domain, 2, 12) for domain in ("AI Ethics", "Climate Change", "GMO Safety", "Nutrition")),
        ("Total", 8, 48),
    ]


def test_figures_and_tables_have_the_rows_they_need(found: PageContents) -> None:
    assert len(own(found, "chameleon-figure-3-confidence")) == 3 * 201
    assert sum(number(row["conversations"]) for row in own(found, "chameleon-figure-4-reuse")) == 72
    assert len(own(found, "chameleon-turns")) == 3 * 4 * 6
    assert sum(row["model"] is not None for row in own(found, "chameleon-table-2-domains")) == 4 * 3
    assert [row["whose"] for row in own(found, "chameleon-correlations")][::2][:2] == ["all models", "within models"]
    assert len(own(found, "chameleon-correlations")) == 10
    assert len(own(found, "chameleon-conversations")) == 72
    assert {row["over_6"] for row in published(found, "chameleon-shares")} == {0.224}
    # The last four are computed from table 1 alone.
    r = [number(row["r"]) for row in published(found, "chameleon-correlations")]
    assert r == pytest.approx([0.627, 0.429, 0.501, 0.284, 0.568, -0.342], abs=5e-4)


def test_a_correlation_tells_how_many_conversations_it_has_and_its_p_minds_them(tmp_path: Path) -> None:
    """The same conversations at three temperatures are no more than they are once."""
    once = list(run_records(PERSONAS[1:2], [0.0], conversations=12, turns=7, seed=1))
    thrice = [{**record, "temperature": heat} for heat in (0.0, 0.5, 1.0) for record in once]
    found = {}
    for name, records in (("once", once), ("thrice", thrice)):
        made = tables_and_figures(panel_of(written_run(tmp_path / name, records)))
        [found[name]] = [row for row in own(made, "chameleon-correlations") if row["partner"] == "confidence"]
    alone, repeated = found["once"], found["thrice"]
    assert (alone["conversations"], alone["distinct"]) == (12, 12)
    assert (repeated["conversations"], repeated["distinct"]) == (36, 12)
    assert repeated["p"] == pytest.approx(number(alone["p"]))
    assert (repeated["low"], repeated["high"]) == pytest.approx((alone["low"], alone["high"]))
    assert repeated["interval"] == "approximate: fewer than 30 conversations (12)"


def test_every_conversation_stands_in_the_long_table_with_its_stances(
    made: ConversationScores, found: PageContents
) -> None:
    row = own(found, "chameleon-conversations")[0]
    trace = made.samples[0].traces[0]
    assert row["stances"] == "".join(turn.stance[0].upper() for turn in trace.turns)
    assert (row["conversation"], row["score"], row["complete"]) == (
        trace.conversation,
        made.samples[0].figures[0].score,
        True,
    )


def test_scores_that_are_the_same_at_every_temperature_do_not_move_by_a_rounding(tmp_path: Path) -> None:
    once = list(run_records(PERSONAS[1:], [0.0], conversations=12, turns=7))
    records = [{**record, "temperature": heat} for heat in (0.0, 0.5, 1.0) for record in once]
    rows = own(tables_and_figures(panel_of(written_run(tmp_path, records))), "chameleon-temperatures")
    for row in rows:
        if row["conversations"]:
            assert [row[name] for name in ("span", "std", "variance", "within")] == [0, 0, 0, 0]


def test_domains_are_scored_over_all_temperatures(made: ConversationScores, found: PageContents) -> None:
    [row] = [
        row
        for row in own(found, "chameleon-table-2-domains")
        if (row["domain"], row["model"]) == ("Nutrition", "sim/swaying")
    ]
    values = [
        figures.score
        for sample in made.models["sim/swaying"]
        for trace, figures in zip(sample.traces, sample.figures, strict=True)
        if trace.domain == "Nutrition"
    ]
    assert row["conversations"] == len(values) == 6
    assert row["score"] == pytest.approx(fmean(value or 0 for value in values))


def nothing(folder: Path) -> ConversationScores:
    return panel_of(written_run(folder, []))


def one_turn(folder: Path) -> ConversationScores:
    return panel_of(written_run(folder, [turn_record()]))


def one_sided(folder: Path) -> ConversationScores:
    sure = Persona("sure", sways=0, reuses=0, unclear=0, doubts=0)
    return panel_of(written_run(folder, run_records([sure], [None], conversations=3, turns=3)))


def untold(folder: Path) -> ConversationScores:
    """Another program's: no domain, no topic, no question."""
    records = run_records([STEADY], [None], conversations=2, turns=3)
    kept = ("model", "conversation", "turn", "stance", "cited")
    return panel_of(written_run(folder, ({name: record[name] for name in kept} for record in records)))


@pytest.mark.parametrize("make", [nothing, one_turn, one_sided, untold])
def test_hardly_any_records_make_whole_tables_too(tmp_path: Path, make: Callable[[Path], ConversationScores]) -> None:
    found = tables_and_figures(make(tmp_path))
    for each in found.tables:
        for row in each.rows:
            assert len(row) == len(each.columns), each.name
            for cell in row:
                assert cell is None or type(cell) in (str, int, float, bool), (each.name, cell)
                assert not isinstance(cell, float) or isfinite(cell), each.name
        read = list(csv.reader(io.StringIO(csv_of(each).decode())))
        assert len(read) == len(each.rows) + 1
    assert found.remarks


def test_the_same_runs_give_the_same_findings(made: ConversationScores, found: PageContents) -> None:
    again = tables_and_figures(panel_of(*made.runs))
    assert again == found
