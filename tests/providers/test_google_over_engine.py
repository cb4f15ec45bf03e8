"""Gemini and Vertex AI through the whole engine, over real sockets: found, asked, kept, stopped, and told to nobody."""

from __future__ import annotations

import asyncio
import logging
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from endpoints import CANARY, transport
from gemini_shapes import STREAM, TEXT, error, quota, reason, retry_in, whole
from google_server import CLIENT_SECRET, PEM, REFRESH_TOKEN, TokenServer, authorized_user, refusal, written
from google_server import service_account as info_of
from loops import on_each_loop, run_on
from msgspec import structs
from raw_server import RawServer, Visit, http
from run_sink import RunSink

from millstream import Call, ConfigurationError, Engine, Outcome, Reply, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Fault, SendError, send
from millstream.engine.runs.run_folder import RunFolder
from millstream.providers.credentials.authorizer import key_in
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.protocol import Target
from millstream.providers.transport.endpoint import ModelEndpoint
from millstream.wiring import access_to, keyless_endpoint_to

MODEL = "vertex/gemini-2.5-flash"
POLICY = RetryPolicy(attempts_max=3, wait_min_s=0.01, wait_max_s=0.02, patience_s=1.0, probe_every_s=0.05)
CANARIES = (*(line for line in PEM.splitlines() if len(line) > 20 and "-" not in line), REFRESH_TOKEN, CLIENT_SECRET)
CANARIES += ("ya29.canary",)


async def echo(visit: Visit) -> None:
    """A model that says what it was sent, token and all."""
    while (request := await visit.request()) is not None:
        parts = [{"text": request.decode("utf-8", "replace")}]
        body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "modelVersion": "echo"}
        await visit.send(http(orjson.dumps(body)))


def settings_for(folder: Path, **environment: str) -> Settings:
    """`gcloud`'s folder is an empty one, whatever stands in the home of who runs this."""
    variables = {"CLOUDSDK_CONFIG": str(folder / "none"), **environment}
    return Settings(cache=folder / "cache", environment=variables, policy=POLICY)


def row(outcome: Outcome) -> bytes:
    return orjson.dumps({"id": outcome.key, "all": repr(outcome)})


async def run_and_tell(settings: Settings, folder: Path, calls: int) -> tuple[list[Outcome], str]:
    """Some calls, and whatever is said of them."""
    outcomes: list[Outcome] = []
    said: list[str] = []
    with RunFolder(folder / "run", {"model": MODEL}) as run:
        async with Engine(settings=settings) as engine:
            try:
                asked = (Call(MODEL, f"prompt {number}") for number in range(calls))
                outcomes += [one async for one in engine.run(asked, RunSink(run, row))]
            except Stopped as error:
                said += ["".join(traceback.format_exception(error)), repr(error.stops)]
            route = engine.scheduler.routes.of(MODEL)
            said += [repr(engine), repr(engine.scheduler), repr(route), repr(access_to(MODEL, settings))]
    return outcomes, "\n".join([*said, *map(repr, outcomes)])


def assert_nothing_came_to_light(folder: Path, *said: str) -> None:
    written_by_us = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert any(path.name == "data.mdb" for path in written_by_us)
    everything = [*(path.read_bytes() for path in written_by_us), *(text.encode() for text in said)]
    assert [canary for canary in CANARIES for data in everything if canary.encode() in data] == []


@pytest.mark.parametrize("info", [info_of, authorized_user], ids=["service account", "login"])
def test_a_run_makes_one_exchange_and_brings_no_secret_to_light(
    info: Callable[..., dict[str, Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> tuple[list[Outcome], str, int]:
        async with TokenServer(delay_s=0.02) as tokens, RawServer(echo) as model:
            settings = settings_for(
                tmp_path,
                GOOGLE_APPLICATION_CREDENTIALS=str(written(tmp_path, info(tokens.url))),
                GOOGLE_VERTEX_BASE_URL=f"http://127.0.0.1:{model.port}",
            )
            return *(await run_and_tell(settings, tmp_path, 50)), tokens.exchanges

    outcomes, said, exchanges = asyncio.run(scenario(), debug=True)
    assert [outcome.status for outcome in outcomes] == ["ok"] * 50 and exchanges == 1
    assert all(outcome.reply is not None and "Bearer [key]" in outcome.reply.text for outcome in outcomes)
    assert_nothing_came_to_light(tmp_path, said, caplog.text)


def test_a_refused_exchange_stops_the_lane_after_one_probe_and_nothing_is_sent(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], str, int, int]:
        async with TokenServer(answer=refusal()) as tokens, RawServer(echo) as model:
            settings = settings_for(
                tmp_path,
                GOOGLE_APPLICATION_CREDENTIALS=str(written(tmp_path, info_of(tokens.url))),
                GOOGLE_VERTEX_BASE_URL=f"http://127.0.0.1:{model.port}",
            )
            outcomes, said = await run_and_tell(settings, tmp_path, 50)
            return outcomes, said, tokens.exchanges, model.connections

    outcomes, said, exchanges, connections = asyncio.run(scenario())
    assert (outcomes, exchanges, connections) == ([], 2, 0)
    assert "Google refuses the credentials in" in said and "invalid_grant: Invalid JWT Signature." in said
    assert_nothing_came_to_light(tmp_path, said)


def test_a_token_endpoint_that_is_ill_for_a_moment_costs_no_call(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], int]:
        async with TokenServer(answer=http(b"{}", status="503 Busy")) as tokens, RawServer(echo) as model:
            settings = settings_for(
                tmp_path,
                GOOGLE_APPLICATION_CREDENTIALS=str(written(tmp_path, info_of(tokens.url))),
                GOOGLE_VERTEX_BASE_URL=f"http://127.0.0.1:{model.port}",
            )
            async with Engine(settings=settings) as engine:
                asked = asyncio.create_task(engine.ask(Call(MODEL, "x")))
                await asyncio.wait_for(tokens.asked.wait(), 10)
                tokens.answer = None
                return [await asked], tokens.exchanges

    (outcome,), exchanges = asyncio.run(scenario())
    assert outcome.status == "ok" and exchanges == 2 and outcome.attempts == 2 and not outcome.maybe_billed


# --- what is told before anything is sent ---


def test_credentials_that_can_not_be_used_are_wrong_usage(tmp_path: Path) -> None:
    async def asked(**environment: str) -> None:
        async with Engine(settings=settings_for(tmp_path, **environment)) as engine:
            await engine.ask(Call(MODEL, "x"))

    missing = str(tmp_path / "missing.json")
    with pytest.raises(ConfigurationError, match=r"missing.json can't be used: it can't be read \(No such file"):
        asyncio.run(asked(GOOGLE_APPLICATION_CREDENTIALS=missing, GOOGLE_CLOUD_PROJECT="p"))
    with pytest.raises(ConfigurationError, match=f"'{MODEL}': a project is needed: set GOOGLE_CLOUD_PROJECT"):
        asyncio.run(asked())


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/"),
        ({"GOOGLE_CLOUD_LOCATION": "us-east5"}, "https://us-east5-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-east5/"),
        ({"CLOUD_ML_REGION": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/locations/eu/"),
        ({"GOOGLE_VERTEX_BASE_URL": "http://h:8/v1"}, "http://h:8/v1/projects/p/locations/global/"),
    ],
)  # fmt: skip
def test_vertex_is_asked_where_its_location_is(environment: dict[str, str], url: str, tmp_path: Path) -> None:
    access = access_to(MODEL, unsent(tmp_path, GOOGLE_CLOUD_PROJECT="p", **environment))
    request = keyless_endpoint_to(access).encode(Call(MODEL, "x"))
    assert request.url == f"{url}publishers/google/models/gemini-2.5-flash:generateContent"
    assert "/projects/" not in request.identity and request.identity.startswith(access.target.base_url)


def unsent(folder: Path, **environment: str) -> Settings:
    """Settings with which nothing is sent, so that no credentials are looked at."""
    return structs.replace(settings_for(folder, **environment), needs_keys=False)


def test_credentials_that_cannot_be_used_are_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a project is needed: set GOOGLE_CLOUD_PROJECT"):
        access_to(MODEL, settings_for(tmp_path))


def test_a_key_in_the_cache_needs_neither_project_nor_credentials(tmp_path: Path) -> None:
    with_project = access_to(MODEL, unsent(tmp_path, GOOGLE_CLOUD_PROJECT="p"))
    without = access_to(MODEL, unsent(tmp_path))
    call = Call(MODEL, "x")
    assert keyless_endpoint_to(with_project).encode(call).identity == keyless_endpoint_to(without).encode(call).identity


def test_accounts_are_told_apart_by_their_credentials_and_projects(tmp_path: Path) -> None:
    def account(**environment: str) -> str:
        return access_to(MODEL, unsent(tmp_path, **environment)).account

    one = account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="p")
    assert one == account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="p")
    assert one != account(GOOGLE_APPLICATION_CREDENTIALS="/two", GOOGLE_CLOUD_PROJECT="p")
    assert one != account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="q")


def test_either_of_geminis_variables_holds_its_key(tmp_path: Path) -> None:
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        settings = settings_for(tmp_path, **{variable: "AIza-0123456789"})
        access = access_to("gemini/gemini-2.5-flash", settings)
        assert access.credentials.key == "AIza-0123456789"
        assert access.target.base_url == "https://generativelanguage.googleapis.com"
    with pytest.raises(ConfigurationError, match="needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY"):
        access_to("gemini/gemini-2.5-flash", settings_for(tmp_path))


# --- broken exchanges of Gemini's, as the table has them ---

ANSWER, STREAMED = whole(), b"".join(STREAM)
Handler = Callable[[Visit], Awaitable[None]]


def once(data: bytes, *, abort: bool = False) -> Handler:
    async def handler(visit: Visit) -> None:
        if await visit.request() is not None:
            await visit.send(data)
            if abort:
                visit.writer.transport.abort()

    return handler


def chunked(data: bytes, *, is_ended: bool = True) -> bytes:
    end = b"0\r\n\r\n" if is_ended else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n" % (len(data), data) + end


CUT = STREAMED[: len(STREAMED) * 2 // 3]
# What is sent, whether it was asked for as a stream: kind, action, maybe billed; None is a reply.
EXCHANGES: dict[str, tuple[bytes, bool, tuple[str, str, bool] | None]] = {
    "whole": (http(ANSWER), False, None),
    "streamed": (chunked(STREAMED), True, None),
    "streamed in one piece": (http(STREAMED), True, None),
    "short Content-Length": (http(ANSWER, length=len(ANSWER) + 9), False, ("incomplete", "retry", True)),
    "longer than Content-Length": (http(ANSWER) + b"more", False, None),
    "truncated JSON": (http(ANSWER[:-9]), False, ("bad_json", "retry", True)),
    "stream cut before its end mark": (chunked(CUT, is_ended=False), True, ("incomplete", "retry", True)),
    "stream that ends too soon": (chunked(CUT), True, ("incomplete", "retry", True)),
    "stream cut after its end mark": (chunked(STREAMED, is_ended=False), True, None),
    "nothing": (b"", False, ("disconnected", "retry", True)),
    "redirect": (http(b"", "Location: http://127.0.0.1:1/", status="307 Moved"), False, ("redirect", "stop", False)),
    "429": (http(error(429, "RESOURCE_EXHAUSTED"), status="429 No"), True, ("rate_limited", "throttle", False)),
    "503": (http(error(503, "UNAVAILABLE"), status="503 No"), True, ("server_error", "retry", False)),
    "403": (http(error(403, "PERMISSION_DENIED"), status="403 No"), False, ("rejected", "confirm", False)),
}


async def exchanged(data: bytes, stream: bool) -> Reply | Fault:
    async with RawServer(once(data)) as server, transport() as over:
        target = Target(f"http://127.0.0.1:{server.port}", "x", "gemini-2.5-flash", "gemini")
        at = ModelEndpoint(gemini.PROTOCOL, target, key_in("x-goog-api-key", "AIza-0123456789"), over, 5.0)
        try:
            return at.decode(await send(at, at.encode(Call("gemini/gemini-2.5-flash", "x", stream=stream))))
        except SendError as error:
            return error.fault


@on_each_loop
@pytest.mark.parametrize("name", EXCHANGES)
def test_a_broken_exchange_is_what_the_table_says(name: str, loop: str) -> None:
    data, stream, expected = EXCHANGES[name]
    result = run_on(loop, exchanged(data, stream))
    if expected is None:
        assert isinstance(result, Reply) and result.text == TEXT
    else:
        assert isinstance(result, Fault), result
        assert (result.kind, result.action, result.is_billed_maybe) == expected


def test_a_minutes_quota_makes_the_lane_wait_and_costs_no_attempt(tmp_path: Path) -> None:
    async def handler(visit: Visit) -> None:
        while await visit.request() is not None:
            seen.append(asyncio.get_running_loop().time())
            slow = http(error(429, "RESOURCE_EXHAUSTED", "No.", retry_in("0.3s")), status="429 Slow")
            await visit.send(slow if len(seen) == 1 else http(ANSWER))

    seen: list[float] = []

    async def scenario() -> Outcome:
        async with RawServer(handler) as server:
            origin = f"http://127.0.0.1:{server.port}"
            settings = settings_for(tmp_path, GEMINI_API_KEY="AIza-0123456789", GOOGLE_GEMINI_BASE_URL=origin)
            settings = structs.replace(settings, policy=structs.replace(POLICY, attempts_max=1))
            async with Engine(settings=settings) as engine:
                return await engine.ask(Call("gemini/gemini-2.5-flash", "x"))

    outcome = asyncio.run(scenario())
    assert outcome.status == "ok" and len(seen) == 2
    assert seen[1] - seen[0] >= 0.29


# --- a key in a header of its own ---

FORMS = (CANARY, quote(CANARY, safe=""), quote(CANARY), b64encode(CANARY.encode()).decode().rstrip("="))


async def give_back(visit: Visit) -> None:
    """The key in every form, where the prompt says."""
    while (request := await visit.request()) is not None:
        assert f"x-goog-api-key: {CANARY}".encode() in request
        said = " ".join(FORMS)
        if b"in an answer" in request:
            parts = [{"text": said}, {"text": said, "thought": True}]
            cited = {"groundingChunks": [{"web": {"uri": f"https://a.example/?key={CANARY}", "title": said}}]}
            one = {"content": {"parts": parts}, "finishReason": "STOP", "groundingMetadata": cited}
            await visit.send(http(orjson.dumps({"candidates": [one]})))
        elif b"in a block" in request:
            await visit.send(http(orjson.dumps({"promptFeedback": {"blockReason": said, "blockReasonMessage": said}})))
        elif b"in an end" in request:
            await visit.send(http(orjson.dumps({"candidates": [{"finishReason": said}]})))
        elif b"in a redirect" in request:
            await visit.send(http(b"", f"Location: http://127.0.0.1:1/?key={CANARY}", status="307 Moved"))
        elif b"in a quota" in request:
            details = quota(f"PerDay {said}"), reason(said)
            await visit.send(http(error(429, said, said, *details), f"Retry-After: {CANARY}", status="429 No"))
        else:
            await visit.send(http(error(400, said, said, reason(said)), status="400 No"))


PLACES = ["in an answer", "in a block", "in an end", "in a redirect", "in a quota", "in an error"]


@pytest.mark.parametrize("place", PLACES)
def test_a_server_that_gives_geminis_key_back_does_not_bring_it_to_light(place: str, tmp_path: Path) -> None:
    model = "gemini/gemini-2.5-flash"

    async def scenario() -> str:
        async with RawServer(give_back) as server:
            origin = f"http://127.0.0.1:{server.port}"
            settings = settings_for(tmp_path, GEMINI_API_KEY=CANARY, GOOGLE_GEMINI_BASE_URL=origin)
            async with Engine(settings=settings) as engine:
                try:
                    return repr(await engine.ask(Call(model, place)))
                except Stopped as error:
                    return "".join(traceback.format_exception(error)) + repr(error.stops)

    said = asyncio.run(scenario())
    assert ("***" if place == "in a redirect" else "[key]") in said
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 0 and not [form for form in FORMS for data in (*files, said.encode()) if form.encode() in data]
