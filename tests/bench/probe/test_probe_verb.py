"""`millstream probe` as a person meets it, against servers on real sockets: what is refused, what ends it, its caps."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import chat_shapes
import pytest
from command_line import Done, Provider, finish, start
from mocks import free_port
from recorder import recording
from torture import times

CommandLine = Callable[..., Done]
MODEL = "sim/open"
PRICES = '[prices."sim/open"]\ninput = 1.0\noutput = 1.0\n'
KILLS = times(8, 1000)
AT_ONCE = 10
CENTS = 0.002
UNUSED = {"x-ratelimit-limit-requests": "1000", "x-ratelimit-remaining-requests": "999"}


def flags(provider: Provider, *more: str) -> tuple[str, ...]:
    return ("probe", MODEL, "--base-url", provider.base_url, "--cache", "cache", "--no-progress", *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "required: PROVIDER/MODEL"),
        (("gpt",), "expected a model as provider/model"),
        (("nobody/m",), "nobody"),
        (("openai/gpt-4o-mini",), "OPENAI_API_KEY"),
        (("search/brave",), "only models' quotas can be probed"),
        (("web/example.org",), "only models' quotas can be probed"),
        ((MODEL, "--mode", "record"), "expected --mode live"),
        ((MODEL, "--max-calls", "0"), "expected a whole number of calls"),
        ((MODEL, "--max-cost", "-1"), "expected a number of dollars"),
        ((MODEL, "--max-cost", "1"), "has no price, so --max-cost can't be kept"),
        ((MODEL, "--max-call", "5"), "unknown option --max-call (nearest: --max-calls)"),
        ((MODEL, "--config", "none.toml"), "expected a readable file"),
        ((MODEL, "--out", "taken.toml"), "taken.toml exists and is not overwritten"),
        ((MODEL, "--out", "no/where.toml"), "expected a file in a folder that exists"),
    ],
)
def test_what_is_asked_wrongly_is_refused_in_one_line_and_nothing_is_sent(
    cli: CommandLine, provider: Provider, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "taken.toml").write_text("kept")
    where = () if arguments[:1] in ((), ("openai/gpt-4o-mini",)) else ("--base-url", provider.base_url)
    done = cli("probe", *arguments, *where)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done.err
    assert said in done.err
    assert provider.calls() == 0
    assert (tmp_path / "taken.toml").read_text() == "kept"


def test_one_call_is_one_call_and_the_object_printed_is_whole(cli: CommandLine, provider: Provider) -> None:
    done = cli(*flags(provider, "--json", "--max-calls", "1"))
    assert done.code == 4
    nothing = {"rpm": None, "tpm": None, "burst": None, "window": None}
    assert json.loads(done.out) == {"lanes": {MODEL: nothing}, "calls": 1, "cost": None}
    assert provider.calls() == 1
    assert "at most 1 call;" in done.err
    assert "so none was written" in done.err
    assert "it takes 2 to 5 minutes a model" in done.err
    assert not Path("cache/probes").exists()


def test_with_no_dollars_nothing_is_sent_and_it_says_what_to_raise(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    done = cli(*flags(provider, "--max-cost", "0", "--config", "prices.toml"))
    assert (done.code, provider.calls()) == (4, 0)
    assert "raise --max-cost" in done.out
    assert "spends at most $0.0000" in done.err


def test_a_cap_of_dollars_holds_by_what_the_server_counted(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    # Headers say that nobody else uses the quota, so that no minute of rest is needed.
    provider.set_quota(requests=1_000)
    done = cli(*flags(provider, "--max-cost", "0.001", "--config", "prices.toml", "--json", "--concurrency", "8"))
    told = json.loads(done.out)
    spent = sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows_of(provider)) * 1e-6
    assert done.code == 4
    assert 0 < spent <= 0.001
    assert told["cost"] == pytest.approx(spent, abs=1e-6)
    assert told["calls"] == provider.calls()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("unauthorized", "401"),
        ("forbidden", "403"),
        ("insufficient_quota", "429"),
        ("spend_cap", "429"),
        ("payment_required", "402"),
        ("redirect=307", "redirects"),
        ("rejected=404", "404"),
        ("truncated_json", "bad_json"),
    ],
)
def test_what_no_second_call_would_mend_ends_it_after_the_first(
    cli: CommandLine, provider: Provider, fault: str, said: str
) -> None:
    provider.set_faults(fault)
    done = cli(*flags(provider, "--json"))
    assert done.code == 4
    assert json.loads(done.out)["calls"] == 1
    # A key that is refused is not asked about a second time, which would be a call beyond the cap.
    assert provider.calls() == 1
    # Another cache does not know that there was a call in the last minute.
    shown = cli(*flags(provider, "--cache", "other"))
    assert said in shown.out
    assert "Traceback" not in shown.err


def test_a_provider_that_is_down_is_told_in_a_line(cli: CommandLine) -> None:
    done = cli("probe", MODEL, "--base-url", f"http://127.0.0.1:{free_port()}/v1", "--cache", "cache", "--no-progress")
    assert done.code == 4
    assert f"{MODEL}: connect: " in done.out


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (200, b"<!doctype html><title>Welcome</title>", "bad_json"),
        (200, b"", "bad_json"),
        (400, b'{"error": {"message": "stream must be true"}}', "stream must be true"),
    ],
    ids=["a page", "nothing", "streams alone"],
)
def test_what_speaks_no_such_protocol_is_asked_once(cli: CommandLine, status: int, answer: bytes, said: str) -> None:
    with recording(answer) as server:
        server.status = status
        done = cli("probe", MODEL, "--base-url", server.base_url, "--cache", "cache", "--no-progress")
        assert (done.code, len(server.sent)) == (4, 1)
    assert said in done.out


def test_what_a_server_says_is_inert_and_answers_without_usage_leave_tokens_unknown(cli: CommandLine) -> None:
    with recording(chat_shapes.whole(usage=None)) as server:
        server.headers = UNUSED
        done = cli(
            "probe", MODEL, "--base-url", server.base_url, "--cache", "c", "--max-calls", "20", "--concurrency", "4"
        )
        assert len(server.sent) <= 20
        assert all(sent.json["max_tokens"] == 1 and "stream" not in sent.json for sent in server.sent)
        assert len({sent.json["messages"][0]["content"][:25] for sent in server.sent}) == len(server.sent)
        server.status, server.answer = 400, b'{"error": {"message": "\\u001b[31mred\\u0007"}}'
        told = cli("probe", MODEL, "--base-url", server.base_url, "--cache", "other")
    assert done.code == 4
    assert f"{MODEL}: its answers name no usage" in done.out
    assert "\x1b" not in told.out + told.err
    assert "red" in told.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_prints_what_is_known_at_once(
    provider: Provider, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(tmp_path, *flags(provider, "--json"))
    provider.await_calls(1)
    process.send_signal(number)
    began = time.monotonic()
    done = finish(process)
    assert done.code == code, done.err
    assert json.loads(done.out)["lanes"][MODEL]["rpm"] is None
    assert json.loads(done.out)["calls"] >= provider.calls() >= 1
    assert "Traceback" not in done.err
    assert time.monotonic() - began < 20


def test_a_probe_right_after_a_call_says_that_it_waits_and_sends_nothing_until_then(
    provider: Provider, cli: CommandLine, tmp_path: Path
) -> None:
    cli(*flags(provider, "--max-calls", "1"))
    process = start(tmp_path, *flags(provider))
    assert process.stderr is not None
    assert any(f"{MODEL} was called in the last minute: waits " in line for line in process.stderr)
    assert provider.calls() == 1
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 130


def test_several_models_share_the_caps_and_of_several_keys_the_first_is_used_and_it_says_so(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE", "first-key")
    monkeypatch.setenv("TWO", "second-key")
    with recording(chat_shapes.whole()) as server:
        server.headers = UNUSED
        lab = f'[providers.lab]\nkind = "openai"\nbase_url = "{server.base_url}"\nkey = "env:ONE"\n'
        lanes = '[lanes."lab/a"]\nrpm = 1\nkeys = ["env:ONE", "env:TWO"]\n'
        (tmp_path / "lab.toml").write_text(lanes + lab)
        models = ("lab/a", "lab/b", "lab/a")
        done = cli("probe", *models, "--config", "lab.toml", "--cache", "c", "--max-calls", "2", "--no-progress")
        assert len(server.sent) <= 2
        assert {sent.headers["authorization"] for sent in server.sent} == {"Bearer first-key"}
    assert done.code == 4
    assert "lab/a at" in done.err and "with the first of its 2 keys, the one in ONE" in done.err
    assert [line.split()[0] for line in done.out.splitlines()[:3]] == ["model", "lab/a", "lab/b"]
    assert "first-key" not in done.out + done.err


def test_a_cache_that_can_not_be_used_is_a_local_fault_and_nothing_is_sent(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file")
    done = cli(*flags(provider))
    assert (done.code, provider.calls()) == (5, 0)
    assert "Traceback" not in done.err


def test_a_fault_before_the_first_call_is_told_in_the_report(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "lanes").write_text("a file")
    done = cli(*flags(provider, "--json"))
    assert (done.code, provider.calls(), json.loads(done.out)["calls"]) == (5, 0, 0)


def test_no_kill_takes_a_probe_past_its_caps(provider: Provider, tmp_path: Path) -> None:
    draw = random.Random(5)
    provider.set_quota(requests=10)
    caps = {f"key-{number}": draw.choice([1, 3, 40, 150]) for number in range(KILLS)}
    keys = list(caps)
    for first in range(0, KILLS, AT_ONCE):
        before, own = provider.calls(), keys[first : first + AT_ONCE]
        processes = [started(provider, tmp_path / key, key, caps[key]) for key in own]
        # Until bursts are under way: the first calls are followed by a pause.
        provider.await_calls(before + len(own) + 3)
        for process in processes:
            time.sleep(0.3 * draw.random())
            process.kill()
            process.communicate()
    sent, spent = Counter[str](), Counter[str]()
    for row in rows_of(provider):
        sent[row["key"]] += 1
        spent[row["key"]] += row["prompt_tokens"] + row["completion_tokens"]
    # As the simulated provider names them.
    allowed = {sha256(key.encode()).hexdigest()[:12]: cap for key, cap in caps.items()}
    assert set(sent) <= set(allowed)
    assert len(sent) > KILLS / 2
    assert max(sent.values()) > 3, "all were killed before a burst"
    assert all(count <= allowed[key] for key, count in sent.items())
    assert max(spent.values()) * 1e-6 <= CENTS


def started(provider: Provider, home: Path, key: str, max_calls: int) -> subprocess.Popen[str]:
    """A probe with a key of its own, by which the provider's log tells it from others."""
    home.mkdir()
    lab = f'[providers.lab]\nkind = "openai"\nbase_url = "{provider.base_url}"\nkey = "env:LAB_KEY"\n'
    (home / "lab.toml").write_text(lab + PRICES.replace(MODEL, "lab/open"))
    caps = ("--max-calls", str(max_calls), "--max-cost", str(CENTS))
    return start(home, "probe", "lab/open", "--config", "lab.toml", "--cache", "cache", *caps, LAB_KEY=key)


def rows_of(provider: Provider) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{provider.address}/sim/log", timeout=10) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]
