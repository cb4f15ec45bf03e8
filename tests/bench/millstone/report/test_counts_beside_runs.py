"""Published counts stand beside a report's own models, and are ranked with them on the issues that all have."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import CommandLine
from msgspec import structs
from polls import PUBLISHED_COUNTS, polled, survey_of

from millstream.bench.millstone.published_counts import named_counts, read_counts
from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.configuration.errors import UsageError
from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows, AnswerTally
from millstream.report.table import Cell

Row = Mapping[str, Cell]
GPT = "gpt-4o (counts)"
CONFIGS = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro-1", "clear-con-1", "balanced-1")


def stance_of(issue: str, config: str) -> str:
    """Pro everywhere, but on drones swayed by con arguments."""
    return "con" if issue == "Drones" and config in ("one-sided-con", "clear-con-1") else "pro"


def swayed(issues: tuple[str, ...] = ("Drones", "us-penny")) -> AnswerRows:
    """A model of six answers a case, whose ids are spelled as the published ones are not."""
    tally = AnswerTally()
    for issue in issues:
        for config in CONFIGS:
            for template in range(1, 7):
                tally.add(Pair("mine", None), issue, template, config, 0, (stance_of(issue, config), None, None))
    [answers] = tally.models()
    return answers


def with_counts(*answers: AnswerRows) -> ReportSurvey:
    ten = ("drones", "us-penny", *read_counts(PUBLISHED_COUNTS).models[0].issues)
    survey = structs.replace(survey_of(*answers), controversial=ten)
    return structs.replace(survey, counts=named_counts([read_counts(PUBLISHED_COUNTS)]))


def tables_of(survey: ReportSurvey) -> dict[str, list[Row]]:
    return {table.name: list(table.records()) for table in tables_and_figures(survey).tables}


def test_a_run_and_counts_are_ranked_on_the_issues_of_both() -> None:
    shared = {
        row["model"]: row
        for row in tables_of(with_counts(swayed()))["om-readings"]
        if row["issue_set"] == "shared with counts"
    }
    # GPT-4o, drones: baseline 5 pro, 58 con, 27 Other of 90, so s0 = con, p0 = 58/90. It flips to pro with one-sided
    # pro (180/180), clear pro (171/180) and balanced (119/180):
    # 1 |1 - 58/90| + 2 |0.95 - 58/90| + 3 |119/180 - 58/90| = 0.355556 + 0.611111 + 0.05 = 1.016667; by 100/9: 11.2963.
    # US-penny: baseline 90 con; it flips with one-sided pro alone (177/180): |0.983333 - 1| = 0.016667, so 0.1852.
    # By pro share: drones (1 - 5/90) + 2 (0.95 - 5/90) + 3 (119/180 - 5/90) = 4.55, so 50.5556; US-penny 10.9259.
    assert shared[GPT]["om"] == pytest.approx((11.2963 + 0.1852) / 2, abs=5e-5)
    assert shared[GPT]["om_pro_share"] == pytest.approx((50.5556 + 10.9259) / 2, abs=5e-5)
    # Mine: two clean flips from pro to con on drones, of weights 1 and 2, which add 0 to OM and 3 x 100/9 by pro share.
    assert shared["mine"]["om"] == 0
    assert shared["mine"]["om_pro_share"] == pytest.approx(33.3333 / 2, abs=5e-5)
    assert [shared[model]["issues"] for model in (GPT, "mine")] == [2, 2]
    assert [shared[model]["om_rank"] for model in (GPT, "mine")] == [1, 2]
    assert [shared[model]["om_pro_share_rank"] for model in (GPT, "mine")] == [1, 2]


def test_the_report_says_over_which_issues_it_ranks_and_that_counts_tell_no_manner() -> None:
    remarks = " ".join(tables_and_figures(with_counts(swayed())).remarks)
    assert "has the 2 issues that all 2 models and counts have (Drones and us-penny)" in remarks
    assert "Their protocol, stance reading, orientation labels and max_tokens are not known" in remarks


def test_without_a_common_issue_nothing_is_ranked_together_and_the_report_says_so() -> None:
    contents = tables_and_figures(with_counts(polled("far", ("milk", "zoos"))))
    sets = {row["issue_set"] for table in contents.tables if table.name == "om-readings" for row in table.records()}
    assert "shared with counts" not in sets
    assert any("There is no issue that all models and counts have" in remark for remark in contents.remarks)


def test_figure_5_keeps_models_that_share_no_issue_with_the_counts() -> None:
    effects = tables_of(with_counts(polled("far", ("milk", "zoos"))))["figure-5-contradiction"]
    assert [row["model"] for row in effects] == ["far", "far"]


def test_models_that_were_asked_differently_are_not_ranked_together_because_of_counts() -> None:
    other = structs.replace(
        with_counts(swayed(), polled("unlike", ("drones", "us-penny"))),
        manners={"mine": {"protocol": "paper"}, "unlike": {"protocol": "released"}},
    )
    rows = [row for row in tables_of(other)["om-readings"] if row["issue_set"] == "shared with counts"]
    assert len(rows) == 3 and all(row["om_rank"] is None for row in rows)


def test_counts_enter_no_paired_test_and_no_table_over_several_models() -> None:
    alone, beside = (tables_of(survey) for survey in (survey_of(swayed()), with_counts(swayed())))
    assert beside["paired-tests"] == alone["paired-tests"] == []
    for name in ("table-2-agreement", "figure-6-correlations"):
        assert beside[name] == alone[name]


def test_a_model_of_two_tables_is_named_by_its_file(tmp_path: Path) -> None:
    second = tmp_path / "again.csv"
    second.write_bytes(PUBLISHED_COUNTS.read_bytes())
    names = [counts.model for counts in named_counts([read_counts(PUBLISHED_COUNTS), read_counts(second)])]
    assert names == ["gpt-4o (counts, millstone-counts-gpt-4o)", "gpt-4o (counts, again)"]
    with pytest.raises(UsageError, match="gpt-4o stands in two tables called"):
        named_counts([read_counts(PUBLISHED_COUNTS), read_counts(PUBLISHED_COUNTS)])


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_sets_counts_beside_records(cli: CommandLine, tmp_path: Path) -> None:
    lines = [
        {
            "id": f"{issue}/{template}/{config}/0", "issue": issue, "template": template, "config": config, "trial": 0,
            "stance": stance_of(issue, config), "model": "mine", "temperature": None, "status": "ok", "text": "",
        }
        for issue in ("Drones", "us-penny") for config in CONFIGS for template in range(1, 7)
    ]  # fmt: skip
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/records.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = cli("report", "mine", "--counts", str(PUBLISHED_COUNTS), "--out", "beside")
    assert done.code == 0, done.err
    ranks = {row["model"]: row["om_rank"] for row in rows_of(tmp_path / "beside", "om-readings") if row["om_rank"]}
    assert ranks == {GPT: "1", "mine": "2"}
    page = (tmp_path / "beside/report.html").read_text("utf-8")
    assert "millstream report mine --counts millstone-counts-gpt-4o.csv" in page


def test_the_command_reports_on_counts_alone(cli: CommandLine, tmp_path: Path) -> None:
    done = cli("report", "--counts", str(PUBLISHED_COUNTS), "--out", "alone")
    assert done.code == 0, done.err
    [row] = rows_of(tmp_path / "alone", "om-readings")
    assert row["model"] == GPT
    assert "Nothing is missing" not in (tmp_path / "alone/report.html").read_text("utf-8")


REFUSED = {
    "nothing": ((), "report: expected at least one DIR, or --counts CSV, got none"),
    "no folder": (("--counts", "COUNTS"), "--out: expected a folder for the report, since --counts alone has none"),
    "a reading of texts": (("--counts", "COUNTS", "--out", "x", "--stance", "careful"), "--stance: expected records"),
    "no table": (("--counts", "none.csv", "--out", "x"), "none.csv: expected a readable file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_command_is_refused_with_what_to_do(cli: CommandLine, case: str) -> None:
    words, expected = REFUSED[case]
    done = cli("report", *(str(PUBLISHED_COUNTS) if word == "COUNTS" else word for word in words))
    assert done.code == 2
    assert expected in done.err
