"""An installed package's benchmark is piloted, reviewed and exported, and `cache why` explains its items."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from command_line import CommandLine, Provider, environment, lines_of
from distributions import install

RIDDLES = """
import millstream as ms
from msgspec import Struct


class Options(ms.SharedOptions, frozen=True, kw_only=True):
    riddles: int = 4


class Readings(Struct, frozen=True):
    pass


class Riddle(ms.Record, frozen=True, kw_only=True):
    mood: str = "glad"
    hint: str = ""


class Riddles(ms.ItemBenchmark):
    name = "riddles"
    title = "Riddles"
    Options = Options
    Readings = Readings
    Record = Riddle
    categories = ("mood",)

    def items(self, options):
        return (ms.Item(f"r{number}", number) for number in range(options.riddles))

    def call(self, item, options, pair):
        return ms.Call(pair.model, f"riddle {item.data}", temperature=pair.temperature)

    def label(self, record):
        if record.id == "r3":
            return None
        choices = (ms.LabelChoice("y", "solved"), ms.LabelChoice("n", "unsolved", "unsolved, or no answer"))
        return ms.Label(text=record.text, choices=choices, readings={"rule": "solved"}, question=f"riddle {record.id}?")

    def score_records(self, records, readings, specification):
        return {"models": {record.model: {"score": 1.0} for record in records}}


class Tales(Riddles):
    name = "tales"
    title = "Tales"

    def items(self, options):
        return (ms.Item(f"t{number}", number, steps=2) for number in range(options.riddles))

    def others(self, options):
        return ("sim/judge",)

    async def run(self, item, ask, done):
        for step in (1, 2):
            if step not in done:
                await ask(ms.Call(ask.pair.model, f"tale {item.id} {step}", temperature=ask.pair.temperature))
                await ask(ms.Call("sim/judge", f"judge {item.id} {step} {ask.pair}"), role="judge")
                yield Riddle()

    label = ms.ItemBenchmark.label


RIDDLES, TALES = Riddles(), Tales()
"""
POINTS = {"riddles": "others_riddles:RIDDLES", "tales": "others_riddles:TALES"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "site", "others-riddles", RIDDLES, {"millstream.benchmarks": POINTS})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "others_riddles", raising=False)
    return tmp_path


def run(cli: CommandLine, provider: Provider, name: str, *more: str) -> None:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    done = cli("run", name, "--model", "sim/open", *where, *more)
    assert done.code == 0, done.err


WATCHED = """
import sys
looked_at = []
def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith("others_riddles-1.0.dist-info/entry_points.txt"):
        looked_at.append(arguments[0])

sys.addaudithook(watch)
from millstream.interfaces.cli.command import main
print(main(sys.argv[1:]), len(looked_at))
"""


def test_a_command_reads_once_what_is_installed(provider: Provider, home: Path) -> None:
    variables = environment(home)
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home / "site"), variables["PYTHONPATH"])))
    words = ("run", "riddles", "--model", "sim/open", "--base-url", provider.base_url, "--out", "run", "--no-report")
    command = [sys.executable, "-P", "-c", WATCHED, *words]
    done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "0 1", done.stderr


def test_its_records_are_exported_with_its_own_columns_and_categories(
    cli: CommandLine, provider: Provider, home: Path
) -> None:
    run(cli, provider, "riddles")
    assert cli("export", "run", "--parquet").code == 0
    table = pq.read_table(home / "run" / "records.parquet")
    # In the order in which the answers came.
    assert sorted(table["id"].to_pylist()) == [f"r{number}" for number in range(4)]
    kinds = {name: str(table.schema.field(name).type) for name in ("mood", "model", "hint")}
    assert kinds["mood"] == kinds["model"] != kinds["hint"] == "string"
    assert set(table["mood"].to_pylist()) == {"glad"}


def test_the_call_of_an_item_is_made_again(cli: CommandLine, provider: Provider, home: Path) -> None:
    run(cli, provider, "riddles", "--temperature", "0.5", "1")
    key = next(
        line for line in lines_of(home / "run/records.jsonl") if (line["id"], line["temperature"]) == ("r2", 1.0)
    )
    done = cli("cache", "why", "run", "r2", "--temperature", "1")
    assert done.out.splitlines()[0] == f"call {key['keys'][0]}" and "hit: answered from the cache" in done.out
    assert "--temperature is missing: give one of the run's (0.5, 1.0)" in cli("cache", "why", "run", "r2").err
    done = cli("cache", "why", "run", "r9", "--temperature", "1")
    assert (done.code, done.err) == (2, "millstream: run has no item 'r9': its ids are as r0\n")
    cli("cache", "prune", "--all", "--cache", "cache")
    assert "miss: never asked" in cli("cache", "why", "run", "r2", "--temperature", "1").out


def test_an_item_of_several_calls_is_explained_by_the_keys_of_its_records(
    cli: CommandLine, provider: Provider, home: Path
) -> None:
    run(cli, provider, "tales")
    done = cli("cache", "why", "run", "t1/2")
    keys = next(line["keys"] for line in lines_of(home / "run/records.jsonl") if line["id"] == "t1/2")
    heading, *rows = done.out.splitlines()
    assert heading == "t1/2 of sim/open (ok): 2 of 2 calls are stored"
    assert [row.split(":")[0].strip() for row in rows] == keys
    assert [row.rpartition(", model ")[2] for row in rows] == ["open", "judge"]
    assert all(": stored 20" in row and "from sim/chat/completions" in row for row in rows)
    assert [line for line in cli("cache", "why", "run", "t1").out.splitlines() if line[0] != " "] == [
        f"t1/{step} of sim/open (ok): 2 of 2 calls are stored" for step in (1, 2)
    ]
    done = cli("cache", "why", "run", "t9")
    first = lines_of(home / "run/records.jsonl")[0]["id"]
    assert (done.code, done.err) == (2, f"millstream: run has no record 't9': its ids are as {first}\n")
    assert (
        "--model: expected one of the run's (sim/open), got x/y"
        in cli("cache", "why", "run", "t1", "--model", "x/y").err
    )
    cli("cache", "prune", "--all", "--cache", "cache")
    heading, *rows = cli("cache", "why", "run", "t1/1").out.splitlines()
    assert "0 of 2 calls are stored" in heading
    assert all(row.endswith(": missing: nothing is stored under this key") for row in rows)
