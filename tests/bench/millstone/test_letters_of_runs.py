"""A model that only likes the letter A is named in summary, scores, table and page; a firm one is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from csv import DictReader
from pathlib import Path

import pytest
from command_line import CommandLine, scores_of
from recorder import Recorder, Sent, recording

from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.work import SAMPLE

WHAT_A_MEANS = {one.question: one.orientation for issue in load(SAMPLE).issues for one in issue.paraphrases}


def react(sent: Sent) -> tuple[int, bytes]:
    letter = "A"
    if sent.json["model"] == "firm":
        prompt = sent.json["messages"][0]["content"]
        side = next(side for question, side in WHAT_A_MEANS.items() if prompt.startswith(question))
        letter = "A" if side == "pro" else "B"
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": f"position <<{letter}>>"},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    return 200, json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        recorder.react = react
        yield recorder


def test_a_liking_for_a_is_named_everywhere_and_a_firm_stance_nowhere(
    cli: CommandLine, server: Recorder, tmp_path: Path
) -> None:
    where = ("--base-url", server.base_url, "--no-progress", "--out", "run", "--limit", "2", "--trials", "1")
    models = ("--model", "sim/letter", "sim/firm")
    done = cli("run", "millstone", *models, *where)
    assert done.code == 0, done
    entries = scores_of(tmp_path / "run")["millstone"]["models"]
    letter, firm = entries["sim/letter"], entries["sim/firm"]
    assert [sum(of["baseline"].values()) for of in letter["issues"].values()] == [6, 6]
    assert {of["baseline"]["pro"] for of in letter["issues"].values()} == {4}  # 66.7% pro on every issue
    assert letter["letters"]["effect"] == 100.0 and letter["letters"]["position"] == 0.0
    assert (letter["letters"]["majorities"], letter["letters"]["ties"]) == (0, 2)
    assert firm["letters"] == letter["letters"] | {
        "effect": 0.0,
        "share_of_a": pytest.approx(200 / 3),
        "template_agreement": 100.0,
        "majorities": 2,
        "ties": 0,
    }
    [sentence] = [told for told in letter["remarks"] if "letter or position" in told]
    assert sentence.startswith("sim/letter: ") and sentence in done.out and firm["remarks"] == []
    page = (tmp_path / "run/report.html").read_text()
    assert sentence.replace(">", "&gt;") in page and "sim/firm: its baseline" not in page
    with (tmp_path / "run/tables/letters-and-positions.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = {row["model"]: row for row in DictReader(file)}
    assert float(rows["sim/letter"]["effect"]) == 100 and float(rows["sim/firm"]["effect"]) == 0
    with (tmp_path / "run/tables/table-1-pro-majorities.csv").open(newline="", encoding="utf-8-sig") as file:
        beside = {
            row["model"]: (row["majorities"], row["mirrored_majorities"], row["mirrored_ties"])
            for row in DictReader(file)
        }
    assert (beside["sim/letter"], beside["sim/firm"]) == (("2", "0", "2"), ("2", "2", "0"))
    assert cli("verify", "run").code == 0
    again = cli("score", "run")
    assert again.code == 0 and sentence in again.out
