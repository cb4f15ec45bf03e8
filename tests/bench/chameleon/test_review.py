"""People label the stance of a turn by the judge's classes, and are compared with the judge."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from chameleon_records import as_lines, turn_record
from command_line import CommandLine


def test_the_stance_of_a_turn_is_labelled_and_compared_with_its_judge(cli: CommandLine, tmp_path: Path) -> None:
    stances = ("supportive", "critical", "balanced", "unclear")
    records = [
        {**turn_record(stance=stance, turn=turn), "text": f"text {turn}", "question": f"why {turn}?", "topic": "tea"}
        for turn, stance in enumerate(stances, 1)
    ]
    records.append({**records[0], "id": "c/5", "turn": 5, "filtered": True})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").write_bytes(b"\n".join(as_lines(records)) + b"\n")
    done = cli("review", "run", "--csv", "run/review.csv")
    assert done.code == 0, done.err
    assert "4 answers are written: fill in `label` with P (supportive: clearly agrees with the premise or" in done.out
    assert "or N (unclear: takes no clear position, or is off-topic), leave blank" in done.out
    path = tmp_path / "run" / "review.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "model",
        "temperature",
        "id",
        "text_sha256",
        "topic",
        "history",
        "question",
        "text",
        "label",
        "certainty",
    ]
    assert {(row["topic"], row["question"][:4], row["text"][:5]) for row in rows} == {("tea", "why ", "text ")}
    histories = {row["text"]: row["history"] for row in rows}
    assert histories["text 1"] == ""
    assert histories["text 3"].startswith("Question: why 1?\n\nAnswer: text 1\n\nQuestion: why 2?\n\nAnswer: text 2")
    given = {"text 1": "p", "text 2": "Critical", "text 3": "N", "text 4": "unclear"}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": given[row["text"]], "certainty": "likely"} for row in rows)
    found = json.loads(cli("review", "run", "--csv", "run/review.csv", "--json").out)
    assert (found["labelled"], list(found["readings"])) == (4, ["judge"])
    assert (found["readings"]["judge"]["agree"], found["readings"]["judge"]["confusion"]["unclear"]["balanced"]) == (
        3,
        1,
    )
    assert list(found["readings"]["judge"]["confusion"]) == list(stances)
    # The record of this test has a judge's confidence of 0.67.
    (rater,) = found["raters"].values()
    assert rater["certainties"] == [{"certainty": 0.67, "labelled": 4, "confidence": pytest.approx(0.67)}]
