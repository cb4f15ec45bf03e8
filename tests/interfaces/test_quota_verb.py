"""`millstream quota`: what was declared, learned and used, per lane and key; a key by its variable and never more."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Provider

from millstream import Call, Engine, Lane, Settings
from millstream.configuration.errors import WRONG_USAGE
from millstream.engine.lanes.lane_files import LaneMemory, LaneNote, Reached, lanes_folder
from millstream.fixtures.provider import AccountQuota, ModelProvider, Options
from millstream.interfaces.cli.quotas import KnownLane, as_json, tell
from millstream.providers.table import Provider as Row

KEYS = {"LAB_KEY": "sk-canary-one-5f60718293a4", "LAB_KEY_2": "sk-canary-two-9d2e1b8c4e5f"}


def lanes_of(cli: CommandLine, *arguments: str) -> list[dict[str, Any]]:
    done = cli("quota", "--json", *arguments)
    assert (done.code, done.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.out)["lanes"]
    return found


def use(folder: Path, calls: int, *, rpm: int, keys: dict[str, str]) -> str:
    """Send a few calls with these keys to a provider that tells its quota; its address."""

    async def scenario() -> str:
        async with ModelProvider(
            Options(quota=AccountQuota(requests=rpm, tokens=70_000), keys=tuple(keys.values()))
        ) as sim:
            made = Settings(
                lanes=(Lane("lab/open", rpm=5_000, concurrency=3),),
                providers={"lab": Row(sim.base_url, "LAB_KEY")},
                key_variables={"lab/open": tuple(keys)},
                cache=folder,
                environment=keys,
            )
            async with Engine(settings=made) as engine:
                async for outcome in engine.run(Call("lab/open", f"prompt {number}") for number in range(calls)):
                    assert outcome.status == "ok"
            return sim.base_url

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_declared_learned_and_used_are_told_for_each_key_by_its_variable(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = use(tmp_path / "cache", 40, rpm=300, keys=KEYS)
    config = tmp_path / "c.toml"
    config.write_text(
        f'[providers.lab]\nbase_url = "{address}"\n[lanes."lab/open"]\nrpm = 5_000\nitpm = 9_000\n'
        'keys = ["env:LAB_KEY", "env:LAB_KEY_2"]\n'
    )
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    lanes = lanes_of(cli, "--config", str(config), "--cache", "cache")
    assert [(lane["model"], lane["key"], lane["address"]) for lane in lanes] == [
        ("lab/open", "LAB_KEY", address),
        ("lab/open", "LAB_KEY_2", address),
    ]
    for lane in lanes:
        assert lane["declared"] == {"rpm": 5_000, "tpm": None, "itpm": 9_000, "otpm": None, "concurrency": 128}
        assert lane["in_use"] == {"rpm": 300, "tpm": 70_000, "itpm": 9_000, "otpm": None}
        learned = {(one["of"], one["limit"], one["window_s"]) for one in lane["learned"]}
        assert learned == {("requests", 300, 60), ("tokens", 70_000, 60)}
        assert all(0 <= one["seconds_ago"] < 60 for one in lane["learned"])
        assert lane["used"]["requests"] > 0 and lane["used"]["input"] > 0
    assert sum(lane["used"]["requests"] for lane in lanes) == 40

    told = cli("quota", "lab/open", "--config", str(config), "--cache", "cache")
    assert told.code == 0
    first, *rows = told.out.splitlines()
    assert first.split() == ["lane", "a", "minute", "declared", "learned", "in", "use", "last", "minute"]
    assert rows[0].startswith("lab/open (LAB_KEY) ") and "5,000" in rows[0] and "300 (" in rows[0] and "ago)" in rows[0]
    assert "lab/open (LAB_KEY_2) " in told.out
    everything = told.out + told.err + json.dumps(lanes)
    assert not [key for key in KEYS.values() for part in (key[:9], key[-4:]) if part in everything.replace(address, "")]


def test_lanes_that_a_cache_was_used_with_are_told_without_any_configuration(cli: CommandLine, tmp_path: Path) -> None:
    use(tmp_path / "cache", 2, rpm=300, keys={"LAB_KEY": KEYS["LAB_KEY"]})
    (lane,) = lanes_of(cli, "--cache", "cache")
    assert (lane["model"], lane["key"], lane["declared"]["rpm"]) == ("lab/open", "LAB_KEY", 5_000)
    assert lane["in_use"]["rpm"] == 300 and lane["used"]["requests"] == 2
    # Asking leaves no trace of its own.
    before = sorted((tmp_path / "cache" / "lanes").iterdir())
    assert lanes_of(cli, "sim/open", "--cache", "cache")[0]["used"]["requests"] is None
    assert sorted((tmp_path / "cache" / "lanes").iterdir()) == before


def test_where_nothing_is_known_that_is_said(cli: CommandLine) -> None:
    told = cli("quota", "sim/open", "--cache", "cache")
    assert told.code == 0
    assert "no quota is declared or learned for sim/open: begins with 16 calls in flight, and up to 1,024" in told.out
    none = cli("quota", "--cache", "cache")
    assert (none.code, none.out) == (
        0,
        "no lane is known: none is declared, and none was used in the last day with cache\n",
    )
    assert cli("quota", "--json", "--cache", "cache").out == '{\n  "lanes": []\n}\n'


def test_a_lane_that_found_its_own_pace_says_where_it_begins() -> None:
    reached = Reached(64, 12.34, time.time() - 7_300)
    lane = KnownLane("sim/open", "", "http://x", Lane("sim/open"), (), None, reached)
    begins = "begins with 64 calls in flight at 12.3 a second (found 2 h 2 min ago), and up to 1,024"
    assert begins in tell([lane])
    (known,) = as_json([lane])["lanes"]
    assert known["reached"]["in_flight"] == 64 and 7_290 < known["reached"]["seconds_ago"] < 7_400


def test_flags_declare_as_they_do_for_a_run(cli: CommandLine) -> None:
    (lane,) = lanes_of(cli, "sim/open", "--rpm", "60", "--tpm", "900", "--concurrency", "4", "--cache", "cache")
    assert lane["declared"] == {"rpm": 60, "tpm": 900, "itpm": None, "otpm": None, "concurrency": 4}
    assert lane["learned"] == []


def test_two_servers_of_one_model_are_told_apart(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    use(tmp_path / "cache", 1, rpm=300, keys={"LAB_KEY": KEYS["LAB_KEY"]})
    use(tmp_path / "cache", 1, rpm=400, keys={"LAB_KEY": KEYS["LAB_KEY"]})
    told = cli("quota", "--cache", "cache").out
    assert told.count("lab/open (LAB_KEY) at http://127.0.0.1:") == 2


def test_a_server_of_this_machine_that_has_ended_is_not_listed_once_its_minute_is_over(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    folder = lanes_folder(tmp_path / "cache")
    folder.mkdir(parents=True)
    addresses = {"there": provider.base_url, "ended": "http://127.0.0.1:9/v1", "far": "http://192.0.2.1/v1"}
    for name, address in addresses.items():
        LaneMemory(LaneNote(f"lab/{name}", "", address, Lane(f"lab/{name}")), folder / f"{name}.lane").close()
    assert {lane["model"] for lane in lanes_of(cli, "--cache", "cache")} == {"lab/there", "lab/far"}


@pytest.mark.needs_benchmark("millstone")
def test_a_run_is_seen_while_its_minute_lasts(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    sent = ("--base-url", provider.base_url, "--cache", "cache")
    assert cli("run", "millstone", "--model", "sim/open", "--rpm", "6000", "--out", "run", *SMALL, *sent).code == 0
    (lane,) = lanes_of(cli, *sent)
    assert lane["declared"]["rpm"] == 6_000 and lane["used"]["requests"] == SMALL_PROMPTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("openai/gpt-4o",), "model 'openai/gpt-4o' needs a key: set OPENAI_API_KEY"),
        (("gpt-4o",), "expected a model as provider/model"),
        (("nobody/x",), "no provider 'nobody'"),
        (("--config", "none.toml"), "none.toml: expected a readable file"),
        (("--mode=live",), "unknown option --mode"),
    ],
)
def test_what_can_not_be_told_is_refused_in_one_line(cli: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    done = cli("quota", *arguments)
    assert done.code == WRONG_USAGE and said in done.err
    assert (done.out, done.err.count("\n")) == ("", 1)


def test_a_declared_lane_without_its_key_is_passed_over_with_a_remark(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[lanes."openai/gpt-4o"]\nrpm = 3\n[lanes."sim/open"]\nrpm = 5\n')
    done = cli("quota", "--config", "c.toml", "--cache", "cache")
    assert done.code == 0 and "sim/open" in done.out
    assert (
        done.err
        == "millstream: model 'openai/gpt-4o' needs a key: set OPENAI_API_KEY, or give its server with --base-url\n"
    )


def test_a_damaged_note_or_ledger_is_nothing_known(cli: CommandLine, tmp_path: Path) -> None:
    use(tmp_path / "cache", 3, rpm=300, keys={"LAB_KEY": KEYS["LAB_KEY"]})
    for path in (tmp_path / "cache" / "lanes").iterdir():
        path.write_bytes(b"\xff" * 100)
    done = cli("quota", "--cache", "cache")
    assert (done.code, done.err) == (0, "") and done.out.startswith("no lane is known")
