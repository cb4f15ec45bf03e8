"""What people said of a run's answers, on its page and in its tables; and its proof."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from chameleon_records import as_lines, turn_record
from command_line import CommandLine

# 40 turns that the judge calls supportive and 10 that it calls critical.
JUDGED = ("supportive",) * 40 + ("critical",) * 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = [
        {**turn_record(conversation=f"c{number}", stance=stance), "text": f"text {number}", "question": "why?"}
        for number, stance in enumerate(JUDGED)
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").write_bytes(b"\n".join(as_lines(records)) + b"\n")
    return tmp_path / "run"


def label(cli: CommandLine, rater: str, label_of: Callable[[Mapping[str, str], int], str], *more: str) -> None:
    """Labels a sample: `label_of` a row and its number among those of its judge's stance."""
    command = ("review", "run", "--rater", rater, "--csv", f"{rater}.csv")
    assert cli(*command, *more).code == 0
    with Path(f"{rater}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    seen = {"supportive": 0, "critical": 0}
    for row in rows:
        stance = JUDGED[int(row["text"].split()[1])]
        row["label"] = label_of({"stance": stance}, seen[stance])
        seen[stance] += 1
    with Path(f"{rater}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert cli(*command).code == 0


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_agreement_of_an_even_sample_is_weighted_back_to_the_run_in_the_report(cli: CommandLine, folder: Path) -> None:
    # 10 of each are drawn. Ann agrees with 9 of 10 supportive and 5 of 10 critical ones; Bob says critical throughout.
    label(cli, "ann", lambda row, at: row["stance"] if at < {"supportive": 9, "critical": 5}[row["stance"]] else "N",
          "--sample", "20")  # fmt: skip
    label(cli, "bob", lambda row, at: "critical")
    assert cli("report", "run").code == 0
    assert "Checked by people" in (folder / "report.html").read_text()
    ann, bob = rows_of(folder, "chameleon-labels-agreement")
    assert (ann["rater"], ann["reading"], ann["labelled"], float(ann["share"])) == ("ann", "judge", "20", 0.7)
    # 40/50 x 9/10 + 10/50 x 5/10
    assert float(ann["run_share"]) == pytest.approx(0.82)
    # The person: supportive 0.72, critical 0.1, unclear 0.18; the judge: 0.8 and 0.2; by chance 0.576 + 0.02 = 0.596.
    assert float(ann["run_kappa"]) == pytest.approx((0.82 - 0.596) / (1 - 0.596))
    assert (ann["answers"], ann["answers_left_out"], ann["note"]) == ("50", "0", "few labels")
    assert float(bob["run_share"]) == pytest.approx(0.2)
    (pair,) = rows_of(folder, "chameleon-labels-raters")
    # Both say critical of ann's five: 5 of 20, and 0.2 x 0.5 of the run.
    assert (pair["first"], pair["second"], pair["labelled"], float(pair["share"])) == ("ann", "bob", "20", 0.25)
    assert float(pair["run_share"]) == pytest.approx(0.1)
    critical = next(
        row
        for row in rows_of(folder, "chameleon-labels-by-label")
        if (row["rater"], row["label"]) == ("ann", "critical")
    )
    assert (critical["rater_labels"], float(critical["reading_too"])) == ("5", 1.0)
    assert (critical["reading_labels"], float(critical["rater_too"])) == ("10", 0.5)
