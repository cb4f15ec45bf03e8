"""Scorers beside the main one that fail: each has its reason in records, scores, report and result, and the exit code
of a main one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

import millstream as ms
from millstream.bench.task.grading import grades_in
from millstream.bench.task.records import Record
from millstream.bench.task.rows import TaskRow
from millstream.bench.task.scorers import Function
from millstream.engine.call import Reply

TASK = """
import millstream as ms

def tone(reply, row):
    return 1 / (row["n"] % 4)

score = {"right": ms.regex("prompt [0-7]"), "tone": tone}
mine = ms.Task(data=[{"id": f"r{n}", "n": n} for n in range(12)], prompt="Number {n}?", score=score)
"""
RAISED = "tone: the score function raised on 3 of 12 answers: ZeroDivisionError in mine.py line 5: division by zero."
MEND = " Mend the function, then `millstream rescore DIR --task FILE` scores these answers again without a call."


def asked(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    return ("run", "mine.py", "--model", "sim/open", *where, "--out", "run", *more)


def test_a_second_scorer_that_raises_is_told_everywhere_ends_with_3_and_is_mended_by_rescore(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TASK)
    done = cli(*asked(provider))
    assert done.code == 3 and done.out.count(RAISED + MEND) == 1, done
    told = {
        record["item"]: record["problems"]["tone"]
        for record in lines_of(tmp_path / "run/records.jsonl")
        if "problems" in record
    }
    assert told == dict.fromkeys(
        ("r0", "r4", "r8"), "the score function raised " + RAISED.partition("answers: ")[2][:-1]
    )
    entry = scores_of(tmp_path / "run")["mine"]["models"]["sim/open"]["scores"]["tone"]
    assert list(entry["problems"].values()) == [3] and entry["items"] == 9
    for verb in ("score", "report"):
        done = cli(verb, "run")
        assert done.code == 3 and done.out.count(RAISED + MEND) == 1, done
        assert verb == "report" or "9 of 12" in done.out
    page = (tmp_path / "run/report.html").read_text()
    assert RAISED in page and "Nothing is missing" not in page
    assert cli("verify", "run").code == 0

    (tmp_path / "mine.py").write_text(TASK.replace("1 / (row", "(row"))
    calls = provider.calls()
    done = cli("rescore", "run", "--task", "mine.py")
    assert done.code == 0 and "raised" not in done.out, done
    assert "problems" not in str(lines_of(tmp_path / "run/records.jsonl")) and provider.calls() == calls
    assert cli("score", "run").code == cli("verify", "run").code == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise KeyError(row['n'])", "raised on 12 of 12 answers: KeyError in mine.py line 5: 0."),
        ("raise Mute()", "raised on 12 of 12 answers: Mute in mine.py line 5: it has no words."),
        ("return 'abc'", "gave 'abc', which is no finite number."),
        ("return float('nan')", "gave nan, which is no finite number."),
        ("return float('inf')", "gave inf, which is no finite number."),
        ("return None", "gave None."),
        ("return {}", "gave no score."),
        ("return answer()", "gave a coroutine: a function that asks models is ms.scorer(function, models=[…])."),
    ],
)
def test_a_second_scorer_without_any_figure_has_its_reason_and_ends_with_3(
    cli: CommandLine, provider: Provider, tmp_path: Path, body: str, reason: str
) -> None:
    more = "\nasync def answer():\n    return 1\n\nclass Mute(Exception):\n    __str__ = None\n"
    (tmp_path / "mine.py").write_text(TASK.replace('return 1 / (row["n"] % 4)', body) + more)
    done = cli(*asked(provider, "--no-report"))
    assert done.code == 3, done
    [line] = [line for line in done.out.splitlines() if line.startswith("sim/open: tone has no score: 12 of its 12")]
    assert f"the score function {reason}" in done.out and "none: 12 of 12 answers have no score" in done.out
    assert "sim/open: right" not in done.out and "12 of 12          0 of 12" in done.out
    for command in (("score", "run"), ("rescore", "run", "--task", "mine.py", "--no-report")):
        again = cli(*command)
        assert again.code == 3 and line in again.out and f"the score function {reason}" in again.out


def test_a_second_judge_who_is_unreadable_everywhere_ends_with_3_and_keeps_its_reason_when_scored_again(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TASK.replace('"tone": tone', '"tone": ms.judge("sim/rubbish-judge", "Polite?")'))
    done = cli(*asked(provider, "--no-report"))
    assert done.code == 3, done
    [line] = [line for line in done.out.splitlines() if line.startswith("sim/open: tone has no score: 12 of its 12")]
    assert "Most often: the judge's reply cannot be read: " in line
    before = scores_of(tmp_path / "run")
    again = cli("score", "run", "--task", "mine.py")
    assert again.code == 3 and line in again.out
    assert scores_of(tmp_path / "run") == before and cli("verify", "run").code == 0


def test_evaluate_says_which_score_is_missing_and_why(provider: Provider, tmp_path: Path) -> None:
    def tone(reply: ms.Reply, row: dict[str, int]) -> float:
        return 1 / (row["n"] % 4)

    score: Any = {"right": ms.regex("prompt [0-7]"), "tone": tone}
    task = ms.Task(data=[{"n": n} for n in range(12)], prompt="Number {n}?", score=score)
    where: Any = {"base_url": provider.base_url, "cache": str(tmp_path / "cache")}
    found = ms.evaluate(task, "sim/open", tmp_path / "run", report=False, **where)
    (told,) = found.unmeasured
    line = tone.__code__.co_firstlineno + 1
    raised = f"ZeroDivisionError in test_second_scorers.py line {line}: division by zero"
    assert told == f"tone: the score function raised on 3 of 12 answers: {raised}.{MEND}"
    assert "tone: 0.611 (9 items)" in str(found)
    assert not found.is_whole and told in str(found) and told in found._repr_html_().replace("&#x27;", "'")
    assert [record.problem_of("tone") for record in found.records() if record.problems] == [
        f"the score function raised {raised}"
    ] * 3


def test_records_of_a_version_that_kept_the_main_reason_alone_are_read(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TASK)
    assert cli(*asked(provider, "--no-report")).code == 3
    (tmp_path / "old").mkdir()
    old = [
        {name: value for name, value in record.items() if name not in ("problems", "crc")}
        for record in lines_of(tmp_path / "run/records.jsonl")
    ]
    (tmp_path / "old/records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in old))
    done = cli("score", "old")
    assert "tone: 3 of its 12 answers (25.0%) have no score" in done.out and "its record does not say why" in done.out


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_a_win_rate_of_which_an_order_is_missing_in_the_record_is_no_score(kept: int) -> None:
    scorer = ms.win_rate("a/judge", "{text}")
    call = {"scorer": "wins", "model": "a/judge", "grade": "first", "score": 1.0, "reference": "theirs"}
    fields = {"id": "r/0", "item": "r", "model": "a/x", "text": "ours", "scores": {"right": 1.0, "wins": 1.0}}
    record = msgspec.convert({**fields, "score": 1.0, "judge": [call] * kept}, Record)
    found = grades_in(record, {"right": ms.regex("o"), "wins": scorer}, None)["wins"]
    assert found.value == (1.0 if kept == 2 else None)


def test_the_words_of_an_error_are_bounded_and_can_always_be_written() -> None:
    def grade(reply: Reply, row: object) -> float:
        raise ValueError(reply.text * 100_000)

    problem = Function(grade).score(Reply("a\ud800"), TaskRow("r", {}, "row 1")).problem or ""
    assert len(problem) < 2_000 and problem.encode().decode() == problem
