"""Win rates: a judge reads an answer beside a reference's, in both orders; over real HTTP and with scripted judges."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import msgspec
import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

import millstream as ms
from millstream.bench.evaluation.door.judges import Judges
from millstream.bench.task.declared import scorers_from
from millstream.bench.task.judge import Exchange
from millstream.bench.task.records import Record
from millstream.bench.task.rows import TaskError, TaskRow
from millstream.bench.task.shown_items import TaskItemReader
from millstream.engine.call import Call, Reply

ROWS, TRIALS = 6, 2
FILE = """
import millstream as ms

mine = ms.Task(
    data=[{"n": n, "text": f"text {n}"} for n in range(ROWS)],
    prompt="Number {n}?",
    system="Be short.",
    score=ms.win_rate("sim/grader", reference=REFERENCE),
    trials=TRIALS,
)
""".replace("ROWS", str(ROWS)).replace("TRIALS", str(TRIALS))
POINTS = ({"first": 1.0, "second": 0.0, "tie": 0.5}, {"first": 0.0, "second": 1.0, "tie": 0.5})


def asked(provider: Provider, *models: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", "mine.py", "--model", *models, *where, "--out", "run")


@pytest.mark.parametrize("reference", ["sim/steady", "{text}"])
def test_each_answer_is_judged_in_both_orders_against_the_references_answer_which_is_paid_once(
    cli: CommandLine, provider: Provider, tmp_path: Path, reference: str
) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace("REFERENCE", repr(reference)))
    done = cli(*asked(provider, "sim/open", "sim/steady"))
    assert done.code == 0, done.err
    records = lines_of(tmp_path / "run/records.jsonl")
    # The reference is under test, too, and its answers are the same; equal answers to a row are judged once.
    judged = {(r["row"]["n"], one, two) for r in records for one, two in orders(r)}
    answers = 2 * ROWS * TRIALS
    assert provider.calls() == answers + len(judged)
    others = {(r["row"]["n"], r["trial"]): r["text"] for r in records if r["model"] == "sim/steady"}
    for record in records:
        key = record["row"]["n"], record["trial"]
        expected = others[key] if "/" in reference else f"text {key[0]}"
        assert [each["reference"] for each in record["judge"]] == [expected] * 2
        points = [each[call["grade"]] for each, call in zip(POINTS, record["judge"], strict=True)]
        assert [call["score"] for call in record["judge"]] == points
        assert record["score"] == fmean(points)
        opened = TaskItemReader(None).judge(msgspec.convert(record, Record))
        assert [(each["grade"], each["reference"]) for each in opened] == [
            (call["grade"], expected) for call in record["judge"]
        ]
    entry = scores_of(tmp_path / "run")["mine"]["models"]["sim/open"]
    assert entry["mean"] == pytest.approx(fmean(r["score"] for r in records if r["model"] == "sim/open"))
    before, calls = scores_of(tmp_path / "run"), provider.calls()
    for command in (("resume", "run"), ("verify", "run"), ("score", "run"), ("score", "run", "--task", "mine.py")):
        done = cli(*command)
        assert done.code == 0 and provider.calls() == calls, done.err
    assert scores_of(tmp_path / "run") == before
    done = cli("judge", "run", "--judge", "sim/grader")
    assert done.code == 2 and "its scores come from win_rate" in done.err


def orders(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    own, other = record["text"], record["judge"][0]["reference"]
    return [(own, other), (other, own)]


def test_a_plan_reckons_with_judge_and_reference(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace("REFERENCE", '"sim/steady"'))
    planned = cli("plan", "mine.py", "--model", "sim/open", "--base-url", provider.base_url)
    assert planned.code == 0 and "sim/grader" in planned.out and "sim/steady" in planned.out, planned.err
    assert provider.calls() == 0


class Scripted:
    """Sends nothing: a judge that finds its verdict in the two texts, and a reference that answers, or refuses."""

    def __init__(self, verdict: Any, reference: Reply | None = None) -> None:
        self.judges, self.prompts = Judges(), list[str]()
        self._verdict, self._reference = verdict, reference or Reply("theirs")

    async def __call__(self, call: Call, *, role: str) -> Reply:
        assert role == "judge"
        if call.model == "a/reference":
            return self._reference
        text = next(iter(call.messages())).words
        self.prompts.append(text)
        texts = re.findall(r"<(?:first|second)-\w+>\n(.*?)\n</", text, re.DOTALL)
        return Reply(json.dumps({"reason": "So.", "grade": self._verdict(*texts)}))


async def scored(scripted: Scripted, reference: str = "a/reference") -> tuple[Any, Any]:
    scorer = ms.win_rate("a/judge", reference, "Is it about {n}?")
    row = TaskRow("r", {"n": 7, "text": "theirs"}, "row 1")
    exchange = Exchange("Why?", "ours", to=lambda model: Call(model, "Why?"))
    score, calls = await scorer.grade("score", exchange, Reply("ours"), row, cast(Any, scripted))
    return score, calls


@pytest.mark.parametrize(
    ("verdict", "score"),
    [
        (lambda one, two: "first" if one == "ours" else "second", 1.0),
        (lambda one, two: "second" if one == "ours" else "first", 0.0),
        (lambda one, two: "first", 0.5),  # a judge that favours a place
        (lambda one, two: "Tie", 0.5),
        (lambda one, two: "tie" if one == "ours" else "second", 0.75),
    ],
)
@pytest.mark.parametrize("reference", ["a/reference", "{text}"])
def test_a_win_counts_1_a_tie_a_half_and_a_place_that_a_judge_favours_nothing(
    verdict: Any, score: float, reference: str
) -> None:
    scripted = Scripted(verdict)
    found, calls = asyncio.run(scored(scripted, reference))
    assert found.value == score and [call.reference for call in calls] == ["theirs", "theirs"]
    assert all("Is it about 7?" in prompt and "Why?" in prompt for prompt in scripted.prompts)


def test_no_verdict_and_no_answer_of_the_reference_are_no_score() -> None:
    unread, calls = asyncio.run(scored(Scripted(lambda one, two: "ours")))
    assert unread.value is None and "its grade is 'ours'" in unread.problem and all(call.repaired for call in calls)
    refused, none = asyncio.run(scored(Scripted(None, Reply("", refused=True))))
    assert (refused.value, refused.problem, none) == (None, "the reference a/reference: the model refused", ())


def test_a_manifest_describes_it_and_what_cannot_be_compared_is_refused(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    for reference in ("a/reference", "{text}"):
        scorer = ms.win_rate("a/judge", reference, "Is it about {n}?", temperature=None, max_tokens=50)
        again = scorers_from({"score": scorer.describe()})["score"]
        assert again.describe() == scorer.describe() and again.within == (0, 1)
    with pytest.raises(TaskError, match='expected a model, as "provider/model", or a template'):
        ms.win_rate("a/judge", reference="text")
    with pytest.raises(TaskError, match="has no column 'texts'"):
        ms.win_rate("a/judge", reference="{texts}").check(TaskRow("r", {"text": "a"}, "row 1"))
    steps = """
import millstream as ms

class Mine(ms.Benchmark):
    data = [{"n": 1}]
    score = ms.win_rate("sim/grader", reference="sim/steady")

    async def run(self, item, ask):
        return (await ask("Why?")).text
"""
    (tmp_path / "mine.py").write_text(steps)
    done = cli(*asked(provider, "sim/open"))
    assert (done.code, provider.calls()) == (2, 0) and "expected a task with a prompt" in done.err, done.err
