"""Every row of the table of faults, through every protocol where it can occur, over a real socket and to a run's end.

What is expected is what the table says (fault_table.ROWS), which is what the documentation shows. A canary is in every
credential, and every server gives back what it was sent, in many forms: it is in nothing that is said or written.
Rows that no provider has a part in (a full disk, signals, clocks, files) are tested where they are decided: engine,
interfaces.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from pathlib import Path

import orjson
import pytest
from dialects import DIALECTS, Dialect
from fault_table import ROWS, FaultRow
from faulty import Asked, Faulty, Variant, forms_of, throttled, variants_of
from google_server import TokenServer
from msgspec import Struct, structs
from run_sink import RunSink

from millstream import Call, Engine, Lane, Outcome, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.events import Event
from millstream.engine.key import key_of
from millstream.engine.limits import Tokens
from millstream.engine.runs.run_folder import RunFolder
from millstream.providers.table import PROVIDERS

# The breaker has rows of its own, below.
POLICY = RetryPolicy(
    attempts_max=3, wait_min_s=0.002, wait_max_s=0.004, patience_s=20.0, probe_every_s=0.01, breaker_failures=1_000
)
OUTPUT_MAX = 50
LATE_S = 0.8
TOLD_S = 0.2
# Longer than a name can be, so that no server of names is asked.
NO_HOST = f"http://{'.'.join(['no-such-host' * 4] * 6)}.invalid"
STOPS = {"empty account": "empty_account", "dead key": "dead_key", "told to wait": "patience", "redirect": "redirect"}

# Where what a server says is told.
GIVEN_BACK = {"error within", "told to wait", "throttled", "empty account", "server error", "overloaded", "gateway"}
GIVEN_BACK |= {"rejected", "dead key", "longer body", "redirect"}

BY_FINISH = "its content filter is told in a finish reason alone, with 200"
# What can't be: of a dialect, a row, a variant. For the rest of the rows there is nothing that one could not say.
CANNOT = {("gemini", "filters by error"): BY_FINISH, ("vertex, gemini", "filters by error"): BY_FINISH}
CANNOT |= {("vertex, llama", "filters by error"): "errors are Google's there, whose filter tells a finish reason"}


class Ended(Struct, frozen=True):
    """How a run ended, and what was seen of it from all sides."""

    outcomes: dict[str, Outcome]
    stopped: str | None
    received: dict[str, int]
    arrivals: list[float]
    requests: int
    tokens: Tokens
    stored: dict[str, bool]
    events: list[Event]
    said: str
    tokens_made: list[str]

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


def prompt_of(lasting: str, variant: Variant, stream: bool) -> str:
    return f"{lasting}: {variant.name}: {'stream' if stream else 'whole'}"


def settings_of(dialect: Dialect, base_url: str, folder: Path, tokens: TokenServer, timeout_s: float) -> Settings:
    credentials = folder / "credentials"
    credentials.mkdir(exist_ok=True)
    name = dialect.model.partition("/")[0]
    row = structs.replace(PROVIDERS[name], version=dialect.version or PROVIDERS[name].version)
    nothing = {"CLOUDSDK_CONFIG": str(credentials / "none")}
    return Settings(
        # Declared so high that nothing waits for it: quotas are counted, and a cut of the rate costs no time.
        lanes=(Lane(dialect.model, rpm=60_000, tpm=1e9, timeout_s=timeout_s),),
        providers={name: row},
        base_url=base_url,
        cache=folder / "work" / "cache",
        environment={**nothing, **dialect.credentials.set_up(credentials, tokens.url)},
        policy=POLICY,
    )


def row_of(outcome: Outcome) -> bytes:
    """More than any benchmark writes of an outcome."""
    detail = "" if outcome.failure is None else outcome.failure.detail
    return orjson.dumps({"id": outcome.key, "error": detail, "all": repr(outcome)})


async def run(settings: Settings, server: Faulty | None, folder: Path, prompts: list[str]) -> Ended:
    """Calls by their prompts, all at once, through everything."""
    outcomes: dict[str, Outcome] = {}
    said: list[str] = []
    events: list[Event] = []
    model = settings.lanes[0].model
    calls = [
        Call(model, f"<<{prompt}>>", max_tokens=OUTPUT_MAX, stream=prompt.endswith("stream"), tag=prompt)
        for prompt in prompts
    ]
    with RunFolder(folder / "work" / "run", {"model": model}) as written:
        async with Engine(settings=settings) as engine:
            engine.events.subscribe(events.append)
            try:
                async for outcome in engine.run(calls, RunSink(written, row_of)):
                    outcomes[outcome.call.tag] = outcome
            except Stopped as error:
                said += ["".join(traceback.format_exception(error)), repr(error.stops)]
            route = engine.scheduler.routes.of(model)
            said += [repr(engine), repr(engine.scheduler), repr(route), repr(settings), repr(outcomes), repr(events)]
            requests, tokens = route.lane.used(asyncio.get_running_loop().time())
            keys = {call.tag: key_of(route.endpoint.encode(call), 0) for call in calls}
            return Ended(
                outcomes,
                None if route.lane.stopped is None else route.lane.stopped.reason,
                {} if server is None else dict(server.received),
                [] if server is None else server.arrivals,
                requests,
                tokens,
                {prompt: engine.scheduler.cache.get(key) is not None for prompt, key in keys.items()},
                events,
                "\n".join(said),
                [],
            )


def ended(dialect: Dialect, variants: tuple[Variant, ...], prompts: list[str], folder: Path, **policy: float) -> Ended:
    async def scenario() -> Ended:
        async with TokenServer() as tokens, Faulty(dialect, variants) as server:
            timeout_s = LATE_S if variants[0].name == "says nothing" else 20.0
            origin = f"http://127.0.0.1:{server.port}{dialect.path}"
            settings = settings_of(dialect, origin, folder, tokens, timeout_s)
            settings = structs.replace(settings, policy=structs.replace(settings.policy, **policy))
            found = await run(settings, server, folder, prompts)
            return structs.replace(found, tokens_made=tokens.tokens)

    return asyncio.run(asyncio.wait_for(scenario(), 20))


# --- what the table says of it ---


def assert_is_as_told(row: FaultRow, end: Ended, prompt: str) -> None:
    """One call that had nothing but this fault, or had it once and was answered."""
    sent, stays, stream = end.received[prompt], prompt.startswith("stays"), prompt.endswith("stream")
    outcome, fault = end.outcomes.get(prompt), row.fault
    if fault is None:
        attempts, status = 1, row.recorded[0]
    elif not stays:
        attempts, status = 2, "ok"
    else:
        most = 2 if fault.is_repeated_once else POLICY.attempts_max
        attempts = {"retry": most, "throttle": most, "confirm": 2}.get(fault.action, 1)
        status = row.recorded[-1 if stream else 0] if row.recorded else "pending"
    is_answer = status in ("ok", "refused")
    assert sent == (1 if row.is_paused and stays else attempts)
    assert end.stored[prompt] == is_answer
    if status == "pending":
        assert outcome is None
        return
    assert outcome is not None and (outcome.status, outcome.attempts) == (status, attempts), outcome
    faulty = attempts - (0 if stays else 1)
    assert outcome.maybe_billed == (faulty if fault is not None and fault.is_billed_maybe else 0)
    assert (outcome.failure is None) == is_answer and not outcome.cached


def total_of(outcome: Outcome) -> int:
    assert outcome.reply is not None and outcome.reply.usage is not None
    return outcome.reply.usage.tokens or 0


def assert_reply_is_as_told(row: FaultRow, outcome: Outcome) -> None:
    """What is particular of an answer that came with a fault."""
    reply = outcome.reply
    assert reply is not None
    assert reply.truncated == (row.name == "cut by length")
    assert (reply.raw is not None) == (row.name == "no text") == ("A \ufffd B" in reply.text)


def assert_quota_is_as_told(row: FaultRow, end: Ended) -> None:
    """What the lane's last minute holds: reserved where it is kept, nothing where it is given back, else as counted."""
    answered = [outcome for outcome in end.outcomes.values() if outcome.reply is not None]
    sent = sum(end.received.values())
    quota = "keep" if row.fault is None else row.fault.quota
    faults = 0 if row.fault is None else sent - len(answered)
    counted = [
        OUTPUT_MAX if one.reply is None or one.reply.usage is None else one.reply.usage.output or 0 for one in answered
    ]
    if quota == "settle" and faults:
        # Every answer, empty or not, counts the same tokens; a fault tells one sum of both.
        assert end.requests == sent
        assert end.tokens.total == sum(
            end.received[one.call.tag.replace("passes", lasting)] * total_of(one)
            for one in answered
            for lasting in ("stays", "passes")
        )
        return
    assert end.requests == len(answered) + (0 if quota == "refund" else faults)
    assert end.tokens.output == sum(counted) + (0 if quota == "refund" else faults * OUTPUT_MAX)


def assert_no_key_came_to_light(
    dialect: Dialect, folder: Path, end: Ended, log: str, *, is_given_back: bool = False
) -> None:
    """`is_given_back`: something was said in which it would stand; of an address, the whole query is struck."""
    written = {str(path): path.read_bytes() for path in (folder / "work").rglob("*") if path.is_file()}
    assert any(name.endswith("data.mdb") for name in written) and any(name.endswith(".jsonl") for name in written)
    everything = {**written, "said": end.said.encode(), "log": log.encode()}
    assert any(mark in end.said for mark in ("[key]", "***")) >= is_given_back
    forms = [form.encode() for secret in (*dialect.credentials.secrets, *end.tokens_made) for form in forms_of(secret)]
    assert [(where, form) for where, data in everything.items() for form in forms if form in data] == []


def asked_of(row: FaultRow, dialect: Dialect) -> tuple[list[tuple[Variant, bool]], list[tuple[Variant, bool]]]:
    """The variants that can be, with how they are asked: those that share a lane, and those that end theirs."""
    every = [
        (variant, stream)
        for variant in variants_of(row.name, row.statuses)
        for stream in variant.streams
        if (dialect.name, variant.name) not in CANNOT
    ]
    return [one for one in every if not one[0].is_alone], [one for one in every if one[0].is_alone]


# Every day each fault over a quarter of the dialects, and each dialect with a quarter of the faults.
FAULTS = [
    pytest.param(row, dialect, id=f"{row.name}-{dialect.name}", marks=() if (at + place) % 4 == 0 else pytest.mark.long)
    for at, row in enumerate(row for row in ROWS if row.name != "unreachable")
    for place, dialect in enumerate(DIALECTS)
]


@pytest.mark.parametrize(("row", "dialect"), FAULTS)
def test_a_fault_ends_as_the_table_says_and_brings_no_key_to_light(
    row: FaultRow, dialect: Dialect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    together, alone = asked_of(row, dialect)
    assert together or alone
    if together:
        lasting = ("stays",) if row.fault is None or row.fault.action == "never" else ("stays", "passes")
        prompts = [prompt_of(one, variant, stream) for variant, stream in together for one in lasting]
        end = ended(dialect, tuple(variant for variant, _ in together), prompts, tmp_path)
        assert end.stopped is None and sorted(end.received) == sorted(prompts)
        for prompt in prompts:
            assert_is_as_told(row, end, prompt)
            if row.fault is None:
                assert_reply_is_as_told(row, end.outcomes[prompt])
        assert_quota_is_as_told(row, end)
        assert bool(end.kinds("cut")) == (row.fault is not None and row.fault.cuts_rate)
        assert_no_key_came_to_light(dialect, tmp_path, end, caplog.text, is_given_back=row.name in GIVEN_BACK)
    for number, (variant, stream) in enumerate(alone):
        folder = tmp_path / str(number)
        folder.mkdir()
        prompt = prompt_of("stays", variant, stream)
        end = ended(dialect, (variant,), [prompt], folder)
        assert end.stopped == STOPS[row.name]
        assert_is_as_told(row, end, prompt)
        assert_quota_is_as_told(row, end)
        assert_no_key_came_to_light(dialect, folder, end, caplog.text, is_given_back=row.name in GIVEN_BACK)


def test_what_is_said_not_to_occur_does_not() -> None:
    """What is left out is a variant of a row that is asked all the same, and there is nothing to send for it."""
    dialects = {dialect.name: dialect for dialect in DIALECTS}
    for name, variant in CANNOT:
        assert variant == "filters by error" and dialects[name].errors.filtered is None
    assert {dialect.name for dialect in DIALECTS if dialect.errors.filtered is None} == {name for name, _ in CANNOT}


# --- what has no server, or takes its time ---


async def nobody(dialect: Dialect, base_url: str, folder: Path, **policy: float) -> Ended:
    async with TokenServer() as tokens:
        settings = settings_of(dialect, base_url + dialect.path, folder, tokens, 20.0)
        settings = structs.replace(settings, policy=structs.replace(settings.policy, **policy))
        found = await run(settings, None, folder, ["stays: whole"])
        return structs.replace(found, tokens_made=tokens.tokens)


def closed_port() -> int:
    """Nobody listens there, and nobody will as long as it is bound."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("kind", ["connect", "dns"])
def test_a_server_that_is_not_there_costs_no_quota_and_in_the_end_stops_the_lane(
    kind: str, dialect: Dialect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (row,) = [row for row in ROWS if row.name == "unreachable"]
    assert row.fault is not None and row.recorded == ("connect", "dns")
    assert (row.fault.action, row.fault.quota, row.fault.is_billed_maybe) == ("retry", "refund", False)
    base_url = f"http://127.0.0.1:{closed_port()}" if kind == "connect" else NO_HOST
    caplog.set_level(logging.DEBUG)
    for number, (policy, status, stopped) in enumerate(
        [({}, kind, None), ({"breaker_failures": 2, "patience_s": 0.05, "attempts_max": 1_000}, None, "patience")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        end = asyncio.run(asyncio.wait_for(nobody(dialect, base_url, folder, **policy), 20))
        assert (end.requests, end.tokens, end.stopped) == (0, Tokens(), stopped)
        outcome = end.outcomes.get("stays: whole")
        assert (None if outcome is None else (outcome.status, outcome.attempts, outcome.maybe_billed)) == (
            None if status is None else (status, POLICY.attempts_max, 0)
        )
        assert not any(end.stored.values())
        assert_no_key_came_to_light(dialect, folder, end, caplog.text)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_lane_waits_as_long_as_it_is_told_and_counts_no_attempt(dialect: Dialect, tmp_path: Path) -> None:
    told = Variant("is told", throttled("Retry-After: 1", f"retry-after-ms: {1000 * TOLD_S:g}"))
    prompt = prompt_of("passes", told, False)
    end = ended(dialect, (told,), [prompt], tmp_path, attempts_max=1)
    outcome = end.outcomes[prompt]
    assert (outcome.status, outcome.attempts, outcome.maybe_billed, end.stored[prompt]) == ("ok", 2, 0, True)
    assert end.arrivals[1] - end.arrivals[0] >= TOLD_S
    assert end.kinds("throttled") and not end.kinds("cut") and end.stopped is None


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_stream_that_spells_a_key_out_in_pieces_is_no_answer_and_is_not_kept(
    dialect: Dialect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def spells(asked: Asked) -> bool:
        secrets.extend(word for word in asked.keys.split() if word.startswith(dialect.credentials.secrets))
        return await asked.send(dialect.answer(secrets[-1], stream=True))

    secrets: list[str] = []
    caplog.set_level(logging.DEBUG)
    spelling = Variant("spells", spells, (True,))
    prompt = prompt_of("stays", spelling, True)
    end = ended(dialect, (spelling,), [prompt], tmp_path)
    outcome = end.outcomes[prompt]
    assert (outcome.status, outcome.attempts, outcome.maybe_billed, end.stored[prompt]) == ("rejected", 1, 1, False)
    assert_no_key_came_to_light(dialect, tmp_path, end, caplog.text)
    stored = (tmp_path / "work" / "cache" / "data.mdb").read_bytes()
    half = secrets[0][: len(secrets[0]) // 2].encode()
    assert len(half) > 8 and half not in stored
