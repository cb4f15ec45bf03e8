"""Orientation labels through every verb: told before anything is sent, corrected if asked, never read in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

from millstream.bench.millstone.work import SAMPLE

ISSUE = "bottle-deposits"
GRID = ("--templates", "4", "--trials", "1", "--model", "sim/open", "--dataset", "data")
PROMPTS = 44
LINE = (
    f"{ISSUE}.json: template 4 is labelled con, but its wording says pro (“A if you support the position in favor”): "
)
AS_GIVEN = f"labels as given, 1 differs from its wording (of 4): {ISSUE}/4: labelled con, worded pro"
CORRECTED = f"labels corrected by wording: 1 of 4 differed: {ISSUE}/4: labelled con, worded pro"
FIX = "--fix-orientation"


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> Path:
    """One issue whose template 4 is labelled con and worded pro."""
    content = json.loads((SAMPLE / f"{ISSUE}.json").read_text("utf-8"))
    assert content["paraphrases"][3]["orientation"] == "pro"
    content["paraphrases"][3]["orientation"] = "con"
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / f"{ISSUE}.json").write_text(json.dumps(content), "utf-8")
    return folder


def run(provider: Provider, out: str, *more: str) -> tuple[str, ...]:
    sending = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    return ("run", "millstone", *GRID, *sending, "--out", out, *more)


def om(folder: Path) -> float:
    found: float = scores_of(folder)["millstone"]["models"]["sim/open"]["om"]
    return found


def labels_in(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())["dataset"]["labels"]


def test_a_plan_tells_each_mismatch_and_which_labels_a_run_would_use(cli: CommandLine) -> None:
    plan = ("plan", "millstone", *GRID)
    done = cli(*plan)
    assert done.code == 0 and f"{LINE}used as labelled; {FIX} reads it by its wording" in done.err
    assert AS_GIVEN in done.out
    fixed = cli(*plan, FIX, "--json")
    assert f"{LINE}corrected by the wording ({FIX})" in fixed.err
    labels = json.loads(fixed.out)["runs"][0]["dataset"]["labels"]
    assert (labels["used"], labels["differ"], labels["summary"]) == ("by wording", 1, CORRECTED)


def test_a_corrected_run_sends_nothing_again_and_scores_otherwise(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    given = cli(*run(provider, "given"))
    assert given.code == 0 and given.err.index(LINE) < given.err.index("writing the report")
    assert AS_GIVEN in given.out and provider.calls() == PROMPTS
    fixed = cli(*run(provider, "fixed", FIX))
    assert fixed.code == 0 and f"{LINE}corrected" in fixed.err and CORRECTED in fixed.out
    assert provider.calls() == PROMPTS and "all from the cache; nothing was sent" in fixed.out
    first, second = (
        {row["id"]: row for row in lines_of(tmp_path / name / "records.jsonl")} for name in ("given", "fixed")
    )
    assert {name: row["key"] for name, row in first.items()} == {name: row["key"] for name, row in second.items()}
    turned = {name for name, row in first.items() if row["stance"] != second[name]["stance"]}
    assert turned == {name for name, row in first.items() if row["template"] == 4 and row["letter"]}
    assert om(tmp_path / "given") != om(tmp_path / "fixed")
    assert (labels_in(tmp_path / "given")["used"], labels_in(tmp_path / "fixed")["used"]) == ("as given", "by wording")
    assert labels_in(tmp_path / "given")["mismatches"][0]["issue"] == ISSUE
    page = (tmp_path / "fixed/report.html").read_text("utf-8")
    assert CORRECTED in page
    page = (tmp_path / "given/report.html").read_text("utf-8")
    assert f"Orientation {AS_GIVEN}. Every score and share here follows the labels" in page
    # Beside tables 2 and 6.
    assert page.count("An inference of this program, not a finding of the paper") == 2
    for folder in ("given", "fixed"):
        assert cli("verify", folder).code == 0

    # Other labels are another plan; read alike they are none.
    names = ("report", "given", "fixed", "--out", "both")
    both = cli(*names)
    assert (
        "not compared: The models were not asked alike" in both.out and "orientation labels (as given in " in both.out
    )
    assert json.loads(cli(*names, FIX, "--json").out)["not_compared"] == []
    assert "paired by issue: they differ in data set (" in cli("score", "given", "fixed").out

    # The same answers under either labels, from the records alone.
    told = json.loads(cli("score", "given", FIX, "--json").out)["given"]["millstone"]["models"]["sim/open"]
    assert told["om"] == om(tmp_path / "fixed")
    assert om(tmp_path / "given") != told["om"]
    report = cli("report", "given", FIX, "--out", "again")
    assert report.code == 0 and CORRECTED in report.err
    rows = (tmp_path / "again/tables/om-by-issue.csv").read_text()
    assert rows == (tmp_path / "fixed/tables/om-by-issue.csv").read_text()


def test_of_records_without_a_manifest_the_page_says_that_labels_are_not_compared(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    assert cli(*run(provider, "plain", "--no-report")).code == 0
    (tmp_path / "plain/manifest.json").unlink()
    assert cli("report", "plain").code == 0
    page = (tmp_path / "plain/report.html").read_text("utf-8")
    assert (
        "whether they agree with their wording is not known, since no manifest tells which data set was asked" in page
    )
    refused = cli("report", "plain", FIX, "--out", "fixed")
    assert refused.code == 2 and "the wordings of its prompts are needed, and no manifest tells" in refused.err
    assert cli("score", "plain", FIX).code == 2


@pytest.mark.needs_benchmark("chameleon")
def test_options_that_read_no_label_are_refused(cli: CommandLine) -> None:
    assert (
        f"{FIX} belongs to `run millstone`"
        in cli("plan", "chameleon", "--model", "sim/open", "--judge", "sim/judge", FIX).err
    )
    assert f"{FIX}: expected records" in cli("score", "--counts", "counts.csv", FIX).err


def test_a_load_test_over_a_mislabelled_data_set_says_so(cli: CommandLine, provider: Provider) -> None:
    load = ("load", "sim/open", "--base-url", provider.base_url, "--dataset", "data", "--rate", "5", "--duration", "1s")
    done = cli(*load, "--out", "loaded", "--no-progress")
    assert f"{ISSUE}/4: labelled con, worded pro (a load test reads no label)" in done.out + done.err, done
