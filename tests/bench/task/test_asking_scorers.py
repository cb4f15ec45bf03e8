"""Scorers that ask models: async functions, and judges that see images and conversations; over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

import millstream as ms
from millstream.bench.task.rows import TaskError
from millstream.bench.task.transcript import Transcript

FILE = """
import asyncio
import millstream as ms

async def careful(reply, row, ask):
    first, second = await asyncio.gather(
        ask(f"Is {reply.text} right about {row['n']}?", max_tokens=50),
        ask([ms.system("Be short."), ms.user(reply.text)], model="sim/steady"),
    )
    again = await ask(f"Is {reply.text} right about {row['n']}?", max_tokens=50, sample=1)
    return {"good": bool(first.text and again.text), "length": len(second.text)}

mine = ms.Task(
    data=[{"n": n} for n in range(5)],
    prompt="Number {n}?",
    score=ms.scorer(careful, models=["sim/grader", "sim/steady"]),
)
"""
GUARDED = """
async def guarded(reply, row, ask):
    try:
        return await careful(reply, row, ask)
    except Exception:
        return 0

mine = ms.Task("""
ROWS, CALLS = 5, 3


def asked(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", "mine.py", "--model", "sim/open", *where, "--out", "run", *more)


def test_an_async_function_asks_models_whose_calls_are_kept_and_never_sent_twice(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    done = cli(*asked(provider))
    assert done.code == 0, done.err
    assert provider.calls() == ROWS * (1 + CALLS)
    records = lines_of(tmp_path / "run/records.jsonl")
    for record in records:
        assert [(call["scorer"], call["model"]) for call in record["judge"]] == [
            ("score", "sim/grader"), ("score", "sim/steady"), ("score", "sim/grader")
        ]  # fmt: skip
        assert record["scores"] == {"good": 1.0, "length": len(record["judge"][1]["text"])}
        assert len(record["keys"]) == 1 + CALLS and record["usage_judge"]["input"] > 0
    before = scores_of(tmp_path / "run")
    for command in (("resume", "run"), ("verify", "run"), ("score", "run"), ("score", "run", "--task", "mine.py")):
        done = cli(*command)
        assert done.code == 0 and provider.calls() == ROWS * (1 + CALLS), done.err
    assert scores_of(tmp_path / "run") == before
    # The same questions read otherwise need no call; another question has no answer.
    path.write_text(FILE.replace('"length": len(second.text)', '"length": -len(second.text)'))
    anew = json.loads(cli("score", "run", "--task", "mine.py", "--json").out)["run"]["mine"]["models"]["sim/open"]
    parts = before["mine"]["models"]["sim/open"]["scores"]
    assert anew["scores"]["length"]["mean"] == -parts["length"]["mean"] and anew["mean"] == 1.0
    path.write_text(FILE.replace("Be short.", "Be brief."))
    done = cli("score", "run", "--task", "mine.py")
    missing = "its call to sim/steady is not in the record, and score sends nothing"
    assert done.code == 3 and missing in done.out
    # An author's `except Exception` makes no score of it.
    path.write_text(path.read_text().replace("mine = ms.Task(", GUARDED).replace("scorer(careful", "scorer(guarded"))
    done = cli("score", "run", "--task", "mine.py")
    assert done.code == 3 and missing in done.out
    assert provider.calls() == ROWS * (1 + CALLS)


def test_a_plan_reckons_with_the_models_and_an_undeclared_one_ends_the_run(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    planned = cli("plan", "mine.py", "--model", "sim/open", "--base-url", provider.base_url, "--json")
    assert planned.code == 0, planned.err
    assert "sim/grader" in planned.out and "sim/steady" in planned.out and "is taken to ask each of them" in planned.out
    (tmp_path / "mine.py").write_text(FILE.replace(', "sim/steady"]', "]"))
    done = cli(*asked(provider))
    assert done.code == 2
    assert "careful asks sim/steady: declare it, as ms.scorer(careful, models=['sim/grader', 'sim/steady'])" in done.err


def test_an_error_of_the_function_is_an_answer_without_a_score(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE.replace("return {", "return 1 / 0, {"))
    done = cli(*asked(provider))
    assert (
        done.code == 3
        and "the score function raised on 5 of 5 answers: ZeroDivisionError in mine.py line 11" in done.out
    ), done.out
    assert len(lines_of(tmp_path / "run/records.jsonl")) == ROWS


def test_a_call_whose_awaiting_code_gave_up_is_kept_as_it_is_paid_for(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    hasty = FILE.replace(
        "    first, second =",
        """    try:
        await asyncio.wait_for(ask("Are you there?", sample=row["n"]), 0.001)
    except TimeoutError:
        pass
    first, second =""",
    )
    (tmp_path / "mine.py").write_text(hasty)
    assert cli(*asked(provider)).code == 0
    assert provider.calls() == ROWS * (1 + 1 + CALLS)
    for record in lines_of(tmp_path / "run/records.jsonl"):
        assert len(record["judge"]) == len(record["keys"]) - 1 == 1 + CALLS
    done = cli("score", "run", "--task", "mine.py")
    assert done.code == 0 and provider.calls() == ROWS * (1 + 1 + CALLS), done.out


def test_what_is_no_async_function_or_names_no_models_is_refused() -> None:
    async def grade(reply: ms.Reply, row: object, ask: object) -> float:
        return 1.0

    with pytest.raises(TaskError, match=r"grade is async, .* as ms.scorer\(grade, models="):
        ms.Task(data=[{"n": 1}], prompt="{n}", score=grade)  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="expected `async def` with reply, row and ask"):
        ms.scorer(print, models="a/b")  # type: ignore[arg-type]
    for models in ([], "", ["grader"]):
        with pytest.raises(TaskError, match=r'models: expected names as "provider/model"'):
            ms.scorer(grade, models=models)


PICTURE = """
import millstream as ms

mine = ms.Task(
    data=[{"n": n} for n in range(3)],
    prompt=lambda row: [ms.user([f"What is picture {row['n']}?", ms.Image(IMAGE)])],
    score=ms.judge("sim/grader", "Is it right?"),
)
"""
TALK = """
import millstream as ms

class Mine(ms.Benchmark):
    data = [{"n": n} for n in range(3)]
    score = ms.judge("sim/grader", "Was it polite about {n}?")

    async def run(self, item, ask):
        talk = [ms.user(f"Number {item['n']}?")]
        talk += [await ask(talk), ms.user("Sure?")]
        return (await ask(talk)).text
"""


@pytest.mark.parametrize("text", [TALK, PICTURE.replace("IMAGE", "'https://example.org/a.png'")])
def test_a_judge_reads_the_conversation_or_the_picture_and_another_one_later_reads_the_same(
    cli: CommandLine, provider: Provider, tmp_path: Path, text: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    done = cli(*asked(provider))
    assert done.code == 0, done.err
    records = lines_of(tmp_path / "run/records.jsonl")
    assert all(record["judge"][0]["score"] == record["score"] is not None for record in records)
    calls = provider.calls()
    assert calls == 3 * (3 if text is TALK else 2)
    done = cli("judge", "run", "--judge", "sim/grader", "--cache", "cache", "--no-progress")
    assert done.code == 0 and "all from the cache; nothing was sent" in done.out, done.err
    if text is TALK:
        transcript = msgspec.convert(records[0]["transcript"], Transcript)
        asked_first, first, doubt, second = [message["content"] for message in records[0]["transcript"]["messages"]]
        talk = f"user: {asked_first}\n\nassistant: {first}\n\nuser: {doubt}\n\nassistant: {second}"
        assert transcript.talk() == talk and transcript.last_answer() == second == records[0]["text"]
    for command in (("verify", "run"), ("score", "run", "--task", "mine.py"), ("report", "run")):
        done = cli(*command)
        assert done.code == 0 and provider.calls() == calls, done.err


def test_a_picture_of_which_only_bytes_were_sent_is_not_judged_anew(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(PICTURE.replace("IMAGE", "'data:image/png;base64,aGk='"))
    assert cli(*asked(provider)).code == 0
    done = cli("judge", "run", "--judge", "sim/grader", "--cache", "cache", "--no-progress")
    assert done.code == 2 and "has an image whose bytes records don't hold" in done.err
