"""What becomes of an item of several steps whose calls fail, whose code raises, or whose run is stopped or killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, finish, lines_of
from toy_outside import COST, KEY, Spent, Toys, ToyServer

TALK = """
talk = [ms.user(f"What is {item['n']} + 10?")]
for doubt in range(3):
    talk += [await ask(talk), ms.user(f"Doubt {doubt}. What is {item['n']} + 10?")]
return talk[-2].text
"""


@pytest.fixture
def toys(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toys]:
    monkeypatch.setenv("LAB_KEY", KEY)
    with ToyServer() as server:
        toys = Toys(cli, server, tmp_path)
        try:
            yield toys
        finally:
            toys.end()


def written(toys: Toys, run: str, *, rows: int = 4, more: str = "pass") -> str:
    """Writes a benchmark whose `run` has this body, and returns its file."""
    body = "".join(f"        {line}\n" for line in run.strip().splitlines())
    (toys.home / "own.py").write_text(
        "import asyncio\nimport millstream as ms\n\nclass Own(ms.Benchmark):\n"
        f"    data = [dict(id=f'n{{n}}', n=n) for n in range({rows})]\n    {more}\n\n"
        f"    async def run(self, item, ask):\n{body}\n    def score(self, item, result):\n        return True\n"
    )
    return "own.py"


def failures(toys: Toys) -> dict[str, str]:
    return {line["id"]: line["status"] for line in toys.lines("failures")}


def test_a_call_that_fails_is_the_items_failure_unless_it_is_caught(toys: Toys) -> None:
    caught = TALK.replace("await ask(talk)", "await self.asked(ask, talk)")
    more = (
        "async def asked(self, ask, talk):\n        try:\n            return await ask(talk)\n"
        "        except ms.CallFailed as error:\n            return ms.assistant(error.failure.kind)\n"
    )
    with toys.server.failing("good: Doubt 0. What is 3"):
        done = toys.run(written(toys, TALK))
        assert done.code == 3 and failures(toys) == {"n3/0": "rejected"}
        (failed,) = toys.lines("failures")
        assert [step.get("status", "ok") for step in failed["transcript"]["calls"]] == ["ok", "rejected"]
        assert toys.run(written(toys, caught.replace("return talk[-2].text", "return len(talk)"), more=more), out="b")
        assert toys.lines("failures", out="b") == []
        (kept,) = [line for line in toys.lines(out="b") if line["item"] == "n3"]
        assert kept["result"] == 7 and "rejected" in [turn["content"] for turn in kept["transcript"]["messages"]]
    written(toys, TALK)
    sent = len(toys.server.asked)
    assert toys.again("retry").code == 0 and failures(toys) == {}
    assert len(toys.server.asked) == sent + 2
    assert toys.cli("verify", "run").code == 0


def test_more_calls_than_steps_max_are_an_outcome_of_their_own_which_no_author_catches(toys: Toys) -> None:
    run = """
for number in range(item["n"] + 3):
    try:
        await ask(f"What is {number} + 10?")
    except Exception:
        return "caught"
return "whole"
"""
    done = toys.run(written(toys, run, more="steps_max = 4"))
    assert done.code == 3 and failures(toys) == {"n2/0": "steps_exceeded", "n3/0": "steps_exceeded"}
    assert "asked more than steps_max = 4 calls" in done.out
    assert len(toys.server.asked) == 3 + 4 + 4 + 4
    (failed, _) = toys.lines("failures")
    assert len(failed["transcript"]["calls"]) == 4 and failed["cost"] == pytest.approx(4 * COST)


def test_an_exception_of_run_is_the_items_failure_and_names_file_and_line(toys: Toys) -> None:
    run = """
text = (await ask(f"What is {item['n']} + 10?")).text
return 1 / (item["n"] - 2)
"""
    done = toys.run(written(toys, run))
    assert done.code == 3 and failures(toys) == {"n2/0": "raised"}
    assert "run() raised ZeroDivisionError: division by zero (own.py line 10)" in done.out
    sent = len(toys.server.asked)
    assert toys.again("retry").code == 3 and len(toys.server.asked) == sent
    assert toys.cli("verify", "run").code == 0


@pytest.mark.parametrize(
    ("run", "error"),
    [
        ("raise SystemExit(7)", "SystemExit: 7 (own.py line 9)"),
        ("raise asyncio.CancelledError()", "CancelledError: (own.py line 9)"),
        ("asyncio.current_task().cancel(); await asyncio.sleep(0)", "CancelledError: (own.py line 9)"),
        ("return object()", "the result of run(): a object cannot be written as JSON"),
        ("return await ask([ask('x')])", "a reply among the messages was not awaited: write `await ask(…)` (own.py"),
        ("return await ask([])", "TypeError: ask: expected a text, or messages such as ms.user(…), got [] (own.py"),
        ("return await ask('x', sample=-1)", "expected a whole number of 0 or more, got -1 (own.py line 9)"),
    ],
)
def test_whatever_run_raises_fails_its_item_alone(toys: Toys, run: str, error: str) -> None:
    (toys.home / "own.py").touch()
    done = toys.run(written(toys, run, rows=2))
    assert done.code == 3 and failures(toys) == {"n0/0": "raised", "n1/0": "raised"}, done.err
    assert error in toys.lines("failures")[0]["error"]


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (
            'await ask("x", model="lab/judge")',
            'ask(model="lab/judge"): declare it on the class, as models = {"judge": "lab/judge"} (own.py line 10)',
        ),
        ('await ask("x", model="judge")', 'as models = {"judge": "provider/model"} (own.py line 10)'),
        ('await ask("x", temperature=1)', "ask(temperature=…): the run decides it: set temperature on the class"),
        ('await ask("x", max_token=1)', "ask(max_token=…): expected extra, json_schema, logprobs"),
    ],
)
def test_a_mistake_that_every_item_makes_ends_the_run_even_if_it_is_caught(toys: Toys, run: str, error: str) -> None:
    done = toys.run(written(toys, f"try:\n    {run}\nexcept Exception:\n    pass\nreturn 1"))
    assert done.code == 2 and done.err.count(error) == 1, done.err
    assert toys.server.asked == [] and toys.lines() == []


def test_a_stop_passes_an_authors_except_and_leaves_the_item_pending(toys: Toys) -> None:
    run = """
try:
    return (await ask(f"What is {item['n']} + 10?")).text
except Exception:
    return "caught"
"""
    with toys.server.failing("good: What is 3", 401):
        done = toys.run(written(toys, run))
    assert done.code == 4 and failures(toys) == {}
    assert "n3/0" not in {line["id"] for line in toys.lines()}
    assert "caught" not in {line["result"] for line in toys.lines()}
    assert toys.again("resume").code == 0 and len(toys.lines()) == 4
    # Even one who catches everything has no result of a stopped item.
    with toys.server.failing("good: What is 3", 401):
        done = toys.run(written(toys, run.replace("Exception", "BaseException")), "--cache", "other", out="all")
    assert done.code == 4 and "caught" not in {line["result"] for line in toys.lines(out="all")}


def test_a_cap_holds_over_all_calls_of_all_items(toys: Toys) -> None:
    more = "max_tokens = 5"
    done = toys.run(written(toys, TALK, rows=6, more=more), "--max-cost", str(7 * COST))
    assert done.code == 4, done.err
    spent = COST * len(toys.server.asked)
    assert 0 < spent <= 7 * COST
    assert toys.again("resume", "--max-cost", "1000").code == 0
    assert len(toys.server.asked) == 6 * 3 and len(toys.lines()) == 6


def test_calls_that_were_begun_run_side_by_side_and_belong_to_the_item(toys: Toys) -> None:
    run = """
one, two = ask.begin("What is 1 + 10?"), ask.begin("What is 2 + 10?")
async def third():
    return (await ask("What is 3 + 10?")).text
ask.begin(third())
return (await one).text + (await two).text
"""
    toys.server.hold()
    process = toys.start(*toys.words("run", written(toys, run, rows=1)))
    toys.server.await_waiting(3)
    toys.server.release()
    assert finish(process).code == 0
    (record,) = toys.lines()
    assert record["result"] == "1112" and len(record["transcript"]["calls"]) == 3
    assert {step["status"] for step in record["transcript"]["calls"] if "status" in step} == set()


def test_messages_are_copied_when_ask_is_called(toys: Toys) -> None:
    run = """
talk = [ms.user("What is 1 + 10?")]
later = ask(talk)
talk.append(ms.user("What is 2 + 10?"))
return (await later).text
"""
    assert toys.run(written(toys, run, rows=1)).code == 0
    assert toys.lines()[0]["result"] == "11"


def test_a_killed_run_pays_for_each_call_once(toys: Toys) -> None:
    toys.server.hold(after=7)
    process = toys.start(*toys.words("run", written(toys, TALK, rows=6)))
    toys.server.await_waiting(4)
    process.send_signal(signal.SIGKILL)
    process.wait()
    toys.server.await_gone()
    toys.server.release()
    done = toys.run("own.py")
    assert done.code == 0, done.err
    # Only what was in flight at the kill is sent again.
    assert len(toys.server.asked) == 6 * 3 + 4
    assert len(lines_of(toys.home / "run/records.jsonl")) == 6
    assert toys.cli("verify", "run").code == 0


def test_in_a_group_of_tasks_a_failed_call_and_the_limit_of_calls_are_what_they_are_alone(toys: Toys) -> None:
    run = """
async with asyncio.TaskGroup() as group:
    for number in range(item["n"] + 1):
        group.create_task(ask(f"What is {number} + 10?"))
return 1
"""
    with toys.server.failing("good: What is 1"):
        done = toys.run(written(toys, run, more="steps_max = 3"))
    assert done.code == 3 and failures(toys) == {"n1/0": "rejected", "n2/0": "rejected", "n3/0": "steps_exceeded"}
    assert [line["id"] for line in toys.lines()] == ["n0/0"]


def test_a_time_limit_of_the_author_ends_the_wait_and_the_call_is_kept(toys: Toys) -> None:
    run = """
try:
    async with asyncio.timeout(0.05):
        await ask("What is 1 + 10?")
except TimeoutError:
    return (await ask("What is 2 + 10?")).text
"""
    toys.server.law = lambda asked: Spent(0.5 if "1 + 10" in asked.prompt else 0.0)
    assert toys.run(written(toys, run, rows=1)).code == 0
    (record,) = toys.lines()
    assert record["result"] == "12" and record["cost"] == pytest.approx(2 * COST)
    assert [call.get("status", "ok") for call in record["transcript"]["calls"]] == ["ok", "ok"]


def test_a_task_that_outlives_its_item_asks_no_more(toys: Toys) -> None:
    run = """
async def branch():
    for number in range(2, 20):
        await ask(f"What is {number} + 10?")
await asyncio.gather(ask("What is 1 + 10?"), branch())
"""
    toys.server.delay_s = 0.01
    with toys.server.failing("good: What is 1 "):
        done = toys.run(written(toys, run, rows=1))
    assert done.code == 3 and failures(toys) == {"n0/0": "rejected"}
    assert "never retrieved" not in done.err and "Traceback" not in done.err
    (failed,) = toys.lines("failures")
    assert 2 <= len(failed["transcript"]["calls"]) == len(toys.server.asked) < 6
    assert failed["cost"] == pytest.approx(COST * (len(toys.server.asked) - 1))
