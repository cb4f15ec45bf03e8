"""Every fault through a whole engine: what is recorded, how often it was sent, and what is kept."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from endpoints import CANARY

from millstream import Call, Engine, Lane, Outcome, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.fixtures.provider import ModelProvider, Options
from millstream.providers.table import Provider

MODEL = "mylab/steady"
POLICY = RetryPolicy(attempts_max=3, wait_min_s=0.01, wait_max_s=0.05, patience_s=2.0, probe_every_s=0.05)
CALL = Call(MODEL, "Say A or B.", max_tokens=50)


def settings(base_url: str, folder: Path, timeout_s: float) -> Settings:
    return Settings(
        lanes=(Lane(MODEL, concurrency=4, timeout_s=timeout_s),),
        # A name in place of the address, so that a second server finds what the first one answered.
        providers={"mylab": Provider(base_url, "MYLAB_KEY", identity="mylab")},
        cache=folder / "cache",
        environment={"MYLAB_KEY": CANARY},
        policy=POLICY,
    )


def asked(folder: Path, call: Call, *faults: str, timeout_s: float = 5.0) -> tuple[Outcome | Stopped, int]:
    """How one call ended, and how often the provider received it."""

    async def scenario() -> tuple[Outcome | Stopped, int]:
        async with (
            ModelProvider(Options(keys=(CANARY,), faults=faults)) as provider,
            Engine(settings=settings(provider.base_url, folder, timeout_s)) as engine,
        ):
            try:
                return await engine.ask(call), provider.log.total
            except Stopped as stopped:
                return stopped, provider.log.total

    return asyncio.run(asyncio.wait_for(scenario(), 30))


# --- what is recorded ---

# fault: status of the outcome, attempts, of which maybe billed
FOREVER = {
    "refuse": ("disconnected", 3, 3),
    "reset_body": ("incomplete", 3, 3),
    "short_content_length": ("incomplete", 3, 3),
    "cut_chunk": ("incomplete", 3, 3),
    "truncated_json": ("bad_json", 3, 3),
    "stream_cut": ("incomplete", 3, 3),
    "error_200": ("server_error", 3, 0),
    "empty_choices": ("empty", 2, 0),
    "huge_body=17": ("too_large", 1, 1),
    "rate_limited": ("rate_limited", 3, 0),
    "server_error": ("server_error", 3, 0),
    "bad_gateway": ("server_error", 3, 3),
    "rejected": ("rejected", 1, 0),
    "rejected=413": ("rejected", 1, 0),
    "redirect": ("redirect", 1, 0),
}
ONCE = {
    "refuse": (2, 1),
    "reset_body": (2, 1),
    "short_content_length": (2, 1),
    "cut_chunk": (2, 1),
    "truncated_json": (2, 1),
    "error_200": (2, 0),
    "empty_choices": (2, 0),
    "rate_limited": (2, 0),
    "rate_limited_ms=20": (2, 0),
    "server_error=503": (2, 0),
    "bad_gateway=504": (2, 1),
    "unauthorized": (2, 0),
    "forbidden": (2, 0),
}


@pytest.mark.parametrize(
    ("fault", "stream"),
    # A lane that is refused slows down, which takes its seconds: once is enough.
    [*((fault, False) for fault in FOREVER), *((fault, True) for fault in FOREVER if fault != "rate_limited")],
)
def test_a_fault_that_stays_is_recorded_and_never_cached(fault: str, stream: bool, tmp_path: Path) -> None:
    call = Call(MODEL, "Say A or B.", max_tokens=50, stream=stream)
    outcome, received = asked(tmp_path, call, fault)
    assert isinstance(outcome, Outcome), outcome
    status, attempts, maybe_billed = FOREVER[fault]
    if stream and fault == "truncated_json":
        status = "incomplete"
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == (status, attempts, maybe_billed)
    assert received == attempts
    again, received = asked(tmp_path, call)
    assert isinstance(again, Outcome) and (again.status, again.cached, received) == ("ok", False, 1)


@pytest.mark.parametrize("fault", ONCE)
def test_a_fault_that_passes_costs_one_more_attempt_and_no_answer(fault: str, tmp_path: Path) -> None:
    outcome, received = asked(tmp_path, CALL, f"{fault},at=1")
    assert isinstance(outcome, Outcome), outcome
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == ("ok", *ONCE[fault])
    assert received == outcome.attempts
    again, received = asked(tmp_path, CALL)
    assert isinstance(again, Outcome) and (again.status, again.cached, received) == ("ok", True, 0)


@pytest.mark.parametrize(
    ("fault", "status", "truncated", "has_raw"),
    [
        ("long_body", "ok", False, False),
        ("early_close", "ok", False, False),
        ("length", "ok", True, False),
        ("bad_utf8", "ok", False, True),
        ("lone_surrogate", "ok", False, True),
        ("content_filter", "refused", False, False),
        ("content_filter=200", "refused", False, False),
    ],
)
def test_what_is_whole_is_recorded_and_cached_as_it_came(
    fault: str, status: str, truncated: bool, has_raw: bool, tmp_path: Path
) -> None:
    first, received = asked(tmp_path, CALL, fault)
    second, received_again = asked(tmp_path, CALL, fault)
    assert (received, received_again) == (1, 0)
    for outcome in (first, second):
        assert isinstance(outcome, Outcome) and outcome.reply is not None, outcome
        assert (outcome.status, outcome.reply.truncated, outcome.reply.raw is not None) == (status, truncated, has_raw)
    assert isinstance(first, Outcome) and isinstance(second, Outcome)
    assert (first.cached, second.cached, first.reply) == (False, True, second.reply)


@pytest.mark.parametrize("fault", ["insufficient_quota", "spend_cap", "payment_required"])
def test_an_empty_account_stops_the_lane_after_one_call(fault: str, tmp_path: Path) -> None:
    stopped, received = asked(tmp_path, CALL, fault)
    assert isinstance(stopped, Stopped), stopped
    assert (stopped.stops[0].reason, received) == ("empty_account", 1)


@pytest.mark.parametrize("fault", ["unauthorized", "forbidden"])
def test_a_dead_key_stops_the_lane_after_one_confirming_probe(fault: str, tmp_path: Path) -> None:
    stopped, received = asked(tmp_path, CALL, fault)
    assert isinstance(stopped, Stopped), stopped
    assert (stopped.stops[0].reason, received) == ("dead_key", 2)


def test_a_wait_that_is_asked_for_spends_no_attempt(tmp_path: Path) -> None:
    outcome, received = asked(tmp_path, CALL, "rate_limited_ms=10,at=1-8")
    assert isinstance(outcome, Outcome)
    assert (outcome.status, received) == ("ok", 9)


@pytest.mark.parametrize("fault", ["slow_headers", "silence", "slow_body"])
def test_a_deadline_holds_for_each_attempt(fault: str, tmp_path: Path) -> None:
    outcome, received = asked(tmp_path, CALL, fault, timeout_s=0.2)
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.attempts, outcome.maybe_billed, received) == ("timeout", 3, 3, 3)


# --- our own machine's limits ---

# Opens files until a handful is left, asks, and lets go of them half a second later.
STARVED = """
import asyncio, os, resource, sys
from pathlib import Path
from millstream import Call, Engine, Lane, Settings
from millstream.engine.attempts.retry import RetryPolicy

async def main(base_url, folder):
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    settings = Settings(
        lanes=(Lane("sim/steady", concurrency=500),), base_url=base_url, cache=Path(folder), environment={},
        policy=RetryPolicy(attempts_max=1),
    )
    async with Engine(settings=settings) as engine:
        hoard = []
        try:
            while True:
                hoard.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for _ in range(4):
                os.close(hoard.pop())
        asyncio.get_running_loop().call_later(0.5, lambda: [os.close(one) for one in hoard])
        calls = (Call("sim/steady", f"prompt {number}") for number in range(100))
        outcomes = [outcome async for outcome in engine.run(calls)]
    waited = sum(outcome.attempts > 1 for outcome in outcomes)
    print(len(outcomes), {outcome.status for outcome in outcomes}, sum(o.maybe_billed for o in outcomes), waited > 0)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_running_out_of_file_descriptors_is_never_a_failure_of_an_item(host: str, tmp_path: Path) -> None:
    async def scenario() -> tuple[bytes, bytes, int]:
        async with ModelProvider() as provider:
            base_url = provider.base_url.replace("127.0.0.1", host)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", STARVED, base_url, str(tmp_path),
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            said, complained = await asyncio.wait_for(process.communicate(), 60)
            return said, complained, provider.log.total

    said, complained, received = asyncio.run(scenario())
    assert said.decode().strip() == "100 {'ok'} 0 True", complained.decode()
    assert received == 100
