"""A run with several keys, one of them dead: it is whole, and whoever started it hears of the key by its variable."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Done, ids_of

from millstream.configuration.errors import RESUMABLE
from millstream.fixtures.provider import ModelProvider, Options

pytestmark = pytest.mark.needs_benchmark("millstone")

GOOD, DEAD = "sk-canary-good-0123456789", "sk-canary-dead-0123456789"


def run_with(
    cli: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *good: str,
    keys: tuple[str, ...],
    more: tuple[str, ...] = (),
) -> tuple[Done, int]:
    """A small run with these keys against a provider that knows the good ones."""

    async def scenario() -> tuple[Done, int]:
        async with ModelProvider(Options(keys=good or ("sk-nobody-has-this-one",))) as sim:
            names = [f"LAB_KEY_{number}" for number, _ in enumerate(keys, 1)]
            for name, key in zip(names, keys, strict=True):
                monkeypatch.setenv(name, key)
            listed = ", ".join(f'"env:{name}"' for name in names)
            lane = f'[lanes."lab/open"]\nconcurrency = 2\nkeys = [{listed}]\n'
            (tmp_path / "c.toml").write_text(f'[providers.lab]\nbase_url = "{sim.base_url}"\n{lane}')
            arguments = ("run", "millstone", "--model", "lab/open", "--config", "c.toml", "--cache", "cache")
            done = await asyncio.to_thread(cli, *arguments, "--out", "run", *SMALL, *more)
            return done, sim.log.total

    return asyncio.run(scenario())


def test_a_dead_key_costs_the_run_nothing_and_is_named(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, received = run_with(cli, tmp_path, monkeypatch, GOOD, keys=(DEAD, GOOD))
    assert done.code == 0, done.err
    assert len(ids_of(tmp_path / "run")) == SMALL_PROMPTS
    assert received <= SMALL_PROMPTS + 2 + 1
    (line,) = [line for line in done.out.splitlines() if "left out" in line]
    assert line.startswith("LAB_KEY_1 was left out of lab/open (dead_key): lab/open refuses the key in")
    assert "lab/open without LAB_KEY_1" in done.err
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [
        key for key in (GOOD, DEAD) if key in done.out + done.err or any(key.encode() in data for data in written)
    ]
    # What may be in flight is told of all keys together.
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["in_flight_max"] == 4


def test_json_names_a_key_that_was_left_out(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = run_with(cli, tmp_path, monkeypatch, GOOD, keys=(DEAD, GOOD), more=("--json", "--no-progress"))
    (lost,) = json.loads(done.out)["runs"][0]["lost_keys"]
    assert (done.code, lost["key"], lost["lane"], lost["reason"]) == (0, "LAB_KEY_1", "lab/open", "dead_key")
    assert lost["detail"].startswith("lab/open refuses the key in LAB_KEY_1 (401")


def test_when_all_keys_are_dead_the_run_stops_with_each_named(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, _ = run_with(cli, tmp_path, monkeypatch, keys=(DEAD, GOOD))
    assert done.code == RESUMABLE
    told = done.out + done.err
    assert "all 2 keys of lab/open stopped: LAB_KEY_" in told
    assert "the key in LAB_KEY_1" in told and "the key in LAB_KEY_2" in told
    assert "left out" not in told
