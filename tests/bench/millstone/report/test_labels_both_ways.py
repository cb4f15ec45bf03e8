"""Where labels contradict their wordings, the report shows the same answers under both, whichever it uses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from command_line import Done, Provider
from msgspec import structs
from polls import survey_of

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.work import SAMPLE
from millstream.engine.runs.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows, AnswerTally, turned
from millstream.report.table import Cell

CommandLine = Callable[..., Done]
CONFIGS = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro-1", "clear-con-1", "balanced-1")


def sided(name: str) -> AnswerRows:
    """Answers A to everything but one-sided con arguments; A is pro by the labels, but by template 4's it is con."""
    tally = AnswerTally()
    for config in CONFIGS:
        for template in range(1, 7):
            is_pro = (config != "one-sided-con") != (template == 4)
            tally.add(Pair(name, None), "milk", template, config, 0, ("pro" if is_pro else "con", None, None))
    [answers] = tally.models()
    return answers


def test_scores_and_agreement_stand_under_both_labels() -> None:
    given = (sided("first"), sided("second"))
    by_wording = tuple(turned(answers, {("milk", 4)}) for answers in given)
    survey = structs.replace(survey_of(*given), by_labels={"as given": given, "by the wordings": by_wording})
    [table] = [each for each in tables_and_figures(survey).tables if each.name == "labels-both-ways"]
    rows: dict[tuple[Cell, Cell], Mapping[str, Cell]] = {(row["model"], row["labels"]): row for row in table.records()}
    # As given: baseline 5 of 6 pro; one-sided con 5 of 6 con, a flip of weight 1: |5/6 - 5/6| = 0 for OM, and
    # 100/9 x |1/6 - 5/6| = 7.4074 by pro share. By the wordings 6 of 6 pro, then 6 of 6 con: 100/9 x 1 = 11.1111.
    for model in ("first", "second"):
        assert [rows[model, labels]["om"] for labels in survey.by_labels] == [0, 0]
        shares = [rows[model, labels]["om_pro_share"] for labels in survey.by_labels]
        assert shares == pytest.approx([7.4074, 11.1111], abs=5e-5)
        assert [rows[model, labels]["majorities"] for labels in survey.by_labels] == [100, 100]
    # Both models have the same shares, so the issue is unanimous; 5/6 pro is no consistency, 6/6 is.
    both = [rows["all models", labels] for labels in survey.by_labels]
    assert [row["unanimous"] for row in both] == [1, 1]
    assert [row["consistent_90"] for row in both] == [0, 1]
    assert [row["consistent_95"] for row in both] == [0, 1]


def test_without_a_mismatch_there_is_no_such_table() -> None:
    tables = tables_and_figures(survey_of(sided("only"))).tables
    assert "labels-both-ways" not in {table.name for table in tables}


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_both_readings_of_a_run_are_those_that_either_report_gives(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    issue = json.loads((SAMPLE / "four-day-week.json").read_text("utf-8"))
    issue["paraphrases"][3]["orientation"] = "con" if issue["paraphrases"][3]["orientation"] == "pro" else "pro"
    (tmp_path / "data/four-day-week.json").write_text(json.dumps(issue))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    done = cli("run", "millstone", "--model", "sim/open", "--dataset", "data", "--trials", "2", "--out", "run", *where)
    assert done.code == 0, done.err
    assert cli("report", "run", "--out", "given").code == 0
    assert cli("report", "run", "--fix-orientation", "--out", "fixed").code == 0
    tables = [rows_of(tmp_path / name, "labels-both-ways") for name in ("given", "fixed")]
    assert tables[0] == tables[1]
    for name, row in zip(("given", "fixed"), tables[0], strict=True):
        [own] = rows_of(tmp_path / name, "om-readings")
        kinds = ("om", "om_pro_share", "om_no_flip")
        assert [row[kind] for kind in kinds] == [own[kind] for kind in kinds]
    assert tables[0][0]["om_no_flip"] != tables[0][1]["om_no_flip"]
