"""An installed package's benchmark: killed, gone on with, scored and proven, and what a defect in its code comes to."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, finish, ids_of, lines_of, scores_of, start
from distributions import install

WALKS = """
import asyncio
import os

import millstream as ms
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.record import Record
from msgspec import Struct


class Options(ms.SharedOptions, frozen=True, kw_only=True):
    walks: int = 12


class Readings(Struct, frozen=True):
    pass


class Step(Record, frozen=True, kw_only=True):
    judged: int | None = None


class Walks(ItemBenchmark):
    name = "walks"
    title = "Walks"
    unit = "step"
    columns = ("steps",)
    Options = Options
    Readings = Readings
    Record = Step

    def items(self, options):
        return (Item(f"w{number}", {"number": number}, steps=3) for number in range(options.walks))

    def others(self, options):
        return ("sim/judge",)

    async def run(self, item, ask, done):
        said = [done[step].text for step in sorted(done)]
        for step in range(len(said) + 1, 4):
            if os.environ.get("BROKEN") == item.id and step == 2:
                said[17]
            prompt = f"{item.id}/{step} of {ask.pair} after {said[-1:]}"
            reply = await ask(ms.Call(ask.pair.model, prompt, temperature=ask.pair.temperature))
            judgement = ms.Call("sim/judge", f"judge {item.id}/{step} of {ask.pair}: {reply.text}")
            judged = await ask(judgement, role="judge")
            said.append(reply.text)
            yield Step(judged=len(judged.text))

    def score_records(self, records, readings, specification):
        if os.environ.get("BROKEN") == "score":
            raise ValueError("by hand")
        models = {}
        for record in records:
            models.setdefault(record.model, {"steps": 0})["steps"] += 1
        return {"models": models}

    def cells(self, entry):
        return (str(entry.get("steps", "-")),)

    def check(self, record, item):
        return None if record.judged is not None else "judged: nobody did"


WALKS = Walks()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "site", "others-walks", WALKS, {"millstream.benchmarks": {"walks": "others_walks:WALKS"}})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "others_walks", raising=False)
    return tmp_path


def command(provider: Provider) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run")
    asked = ("--model", "sim/open", "sim/steady", "--no-report", "--no-progress", "--concurrency", "4")
    return ("run", "walks", *asked, *where)


def test_kills_lose_and_repeat_nothing_and_pay_twice_for_nothing_but_what_was_in_flight(
    cli: CommandLine, provider: Provider, home: Path
) -> None:
    provider.set_faults("slow_body=0.1")
    killed = 0
    for _ in range(2):
        process = start(home, *command(provider), PYTHONPATH=str(home / "site"))
        provider.await_calls(provider.calls() + 5)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        finish(process)
    assert killed
    provider.set_faults()
    done = cli(*command(provider))
    assert done.code == 0, done.err
    ids = ids_of(home / "run")
    assert len(ids) == len(set(ids)) == 2 * 12 * 3
    assert sum(provider.received().values()) <= 2 * 2 * 12 * 3 + killed * 3 * 4
    assert scores_of(home / "run")["walks"]["models"] == {"sim/open": {"steps": 36}, "sim/steady": {"steps": 36}}
    proven = cli("verify", "run")
    assert (proven.code, proven.out.splitlines()[0]) == (0, "ok: 72 records, 0 failures, 0 pending")


def test_a_defect_is_one_line_and_2_and_the_same_command_goes_on_once_it_is_mended(
    cli: CommandLine, provider: Provider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[object] = []
    for broken, said in (
        ("w5", "Walks, item 'w5': its code raised IndexError: list index out of range (others_walks.py line "),
        ("score", "Walks: its code raised ValueError: by hand (others_walks.py line "),
    ):
        monkeypatch.setenv("BROKEN", broken)
        done = cli(*command(provider))
        assert done.code == 2
        (line,) = [line for line in done.err.splitlines() if "its code raised" in line]
        assert said in line and line.endswith("what was answered is kept, and the same command goes on")
        monkeypatch.delenv("BROKEN")
        assert cli("verify", "run").code == 0
        after = lines_of(home / "run" / "records.jsonl")
        assert after[: len(before)] == before and len(after) > len(before)
        before = [*after]
    done = cli("resume", "run", "--no-report", "--no-progress")
    assert done.code == 0, done.err
    assert len(lines_of(home / "run" / "records.jsonl")) == 72
    assert set(provider.received().values()) == {1}
    assert cli("verify", "run").code == 0
