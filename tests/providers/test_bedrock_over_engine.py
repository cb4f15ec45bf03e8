"""Bedrock through the whole engine, over real sockets: signed, answered, stopped, and its keys told to nobody."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest
from bedrock_shapes import STREAM, TEXT, error, exception, whole
from loops import on_each_loop, run_on
from raw_server import RawServer, Visit, http
from run_sink import RunSink

from millstream import Call, Engine, Outcome, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Usage
from millstream.engine.runs.run_folder import RunFolder

MODEL = "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
ACCESS, SECRET = "AKIACANARYKEY7F3A9D2", "cAnArY/7f+3a9d2e1b8c4e5f60718293a4b5c6d7"
TOKEN = "cAnArY+session/token==" + "7f3a9d2e1b8c4e5f" * 20
BEARER = "bedrock-api-key-cAnArY/7f+3a=9d2e1b8c4e5f60718293a4b5c6"
CANARIES = (ACCESS, SECRET, TOKEN, BEARER)
POLICY = RetryPolicy(attempts_max=2, wait_min_s=0.01, wait_max_s=0.02, patience_s=0.1, probe_every_s=0.05)
Handler = Callable[[Visit], Awaitable[None]]


def forms_of(key: str) -> Iterator[str]:
    """As it is, in a URL, and in base64 at each of its three alignments."""
    yield from (key, quote(key, safe=""), quote(key))
    for lead in range(3):
        yield b64encode(b"?" * lead + key.encode()).decode()[4:-4]


def answering(body: bytes, status: str = "200 OK", *headers: str) -> Handler:
    async def handler(visit: Visit) -> None:
        while await visit.request() is not None:
            await visit.send(http(body, *headers, status=status))

    return handler


def failing(name: str, status: int, said: str = "No.") -> Handler:
    waits = ("Retry-After: 3600",) if status == 429 else ()
    return answering(error(said), f"{status} Oops", f"x-amzn-ErrorType: {name}:http://a.example/", *waits)


async def echo(visit: Visit) -> None:
    """Gives back all that it was sent, as AWS does where a signature is wrong."""
    while (request := await visit.request()) is not None:
        said = request.decode("utf-8", "replace")
        said += " ".join(f"{key} {quote(key, safe='')} {b64encode(key.encode()).decode()}" for key in CANARIES)
        if b"in an error" in request:
            await visit.send(http(error(said), f"x-amzn-ErrorType: Odd{TOKEN}", status="400 Bad"))
        elif b"in a stream" in request:
            await visit.send(http(exception(f"validationException{SECRET}", said)))
        else:
            await visit.send(http(whole({"text": said})))


async def asked(
    handler: Handler, folder: Path, prompt: str = "x", *, stream: bool = False, by_bearer: bool = False
) -> tuple[list[Outcome], list[str]]:
    """One call through everything and into a run's folder, and whatever is said of it."""
    outcomes: list[Outcome] = []
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    nothing = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"), "AWS_CONFIG_FILE": str(folder / "none")}
    async with RawServer(handler) as server:
        settings = Settings(
            base_url=f"http://127.0.0.1:{server.port}",
            cache=folder / "cache",
            environment={
                "AWS_REGION": "eu-west-1",
                **nothing,
                **({"AWS_BEARER_TOKEN_BEDROCK": BEARER} if by_bearer else keys),
            },
            policy=POLICY,
        )
        said: list[str] = []
        with RunFolder(folder / "run", {"model": MODEL}) as run:
            async with Engine(settings=settings) as engine:
                calls = [Call(MODEL, prompt, stream=stream)]
                try:
                    outcomes += [
                        one async for one in engine.run(calls, RunSink(run, lambda one: orjson.dumps(repr(one))))
                    ]
                except Stopped as stopped:
                    said += ["".join(traceback.format_exception(stopped)), repr(stopped.stops)]
                said += [repr(engine), repr(engine.scheduler), repr(engine.scheduler.routes.of(MODEL)), repr(settings)]
    return outcomes, said


@on_each_loop
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_is_signed_and_answered(loop: str, stream: bool, tmp_path: Path) -> None:
    heads: list[str] = []

    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            heads.append(request.partition(b"\r\n\r\n")[0].decode())
            await visit.send(http(b"".join(STREAM) if stream else whole()))

    (outcome,), _ = run_on(loop, asked(handler, tmp_path, stream=stream))
    assert outcome.reply is not None, outcome.failure
    assert (outcome.reply.text, outcome.reply.usage, outcome.status) == (TEXT, Usage(19, 22), "ok")
    (head,) = heads
    path = "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse" + ("-stream" if stream else "")
    assert head.startswith(f"POST {path} HTTP/1.1\r\n")
    scope = rf"{ACCESS}/\d{{8}}/eu-west-1/bedrock/aws4_request"
    signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token"
    assert re.search(rf"Authorization: AWS4-HMAC-SHA256 Credential={scope}, {signed}, Signature=[0-9a-f]{{64}}", head)
    assert SECRET not in head


def test_a_bearers_token_is_sent_and_nothing_is_signed(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            heads.append(request)
            await visit.send(http(whole()))

    (outcome,), _ = asyncio.run(asked(handler, tmp_path, by_bearer=True))
    assert outcome.status == "ok"
    assert f"Authorization: Bearer {BEARER}\r\n".encode() in heads[0] and b"X-Amz-" not in heads[0]


# How a run ends: as which status, or stopped with the call pending.
ENDS: dict[str, tuple[Handler, str | None]] = {
    "throttled": (failing("ThrottlingException", 429), None),
    "a day's quota": (failing("ThrottlingException", 429, "Too many tokens per day, please wait."), None),
    "not ready": (failing("ModelNotReadyException", 429), None),
    "late": (failing("ModelTimeoutException", 408), "server_error"),
    "broken": (failing("InternalServerException", 500), "server_error"),
    "unavailable": (failing("ServiceUnavailableException", 503), "server_error"),
    "behind a gateway": (answering(b"<html>", "502 Bad Gateway"), "server_error"),
    "wrong": (failing("ValidationException", 400), "rejected"),
    "no such model": (failing("ResourceNotFoundException", 404), "rejected"),
    "no access": (failing("AccessDeniedException", 403), None),
    "an unknown key": (failing("UnrecognizedClientException", 403), None),
    "keys that have ended": (failing("ExpiredTokenException", 403), None),
    "an account that can't pay": (failing("AccessDeniedException", 403, "INVALID_PAYMENT_INSTRUMENT"), None),
    "a redirect": (answering(b"", "307 Moved", "Location: http://127.0.0.1:1/"), None),
    "cut JSON": (answering(whole()[:-9]), "bad_json"),
    "says nothing": (answering(b'{"stopReason":"end_turn","output":{"message":{"content":[]}}}'), "empty"),
    "filtered": (failing("ValidationException", 400, "Output blocked by content filtering policy"), "refused"),
    "a guardrail": (answering(whole({"text": "No."}, stop="guardrail_intervened")), "refused"),
    "too long": (answering(whole({"text": "hal"}, stop="max_tokens")), "ok"),
}
STREAM_ENDS: dict[str, tuple[Handler, str | None]] = {
    "throttled within": (answering(b"".join(STREAM[:6]) + exception("throttlingException")), None),
    "broken within": (answering(b"".join(STREAM[:6]) + exception("modelStreamErrorException")), "server_error"),
    "cut": (answering(b"".join(STREAM[:6])), "incomplete"),
    "damaged": (answering(b"".join(STREAM).replace(b"posi", b"poso")), "bad_json"),
}


EVERY_END = [
    *((fault, stream) for fault in ENDS for stream in (False, True)),
    *((fault, True) for fault in STREAM_ENDS),
]


@pytest.mark.long
@pytest.mark.parametrize(("fault", "stream"), EVERY_END)
def test_a_run_ends_as_the_table_of_faults_says_and_no_key_comes_to_light(
    fault: str, stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    handler, status = {**ENDS, **STREAM_ENDS}[fault]
    outcomes, said = asyncio.run(asked(handler, tmp_path, stream=stream), debug=True)
    if status is None:
        assert [one.status for one in outcomes] in ([], ["rate_limited"])
    else:
        assert [one.status for one in outcomes] == [status]
    assert_keys_are_nowhere(tmp_path, [*said, caplog.text])


@pytest.mark.parametrize("by_bearer", [False, True], ids=["signed", "bearer"])
@pytest.mark.parametrize("place", ["in an answer", "in an error", "in a stream"])
def test_a_server_that_gives_the_keys_back_does_not_bring_them_to_light(
    place: str, by_bearer: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stream = place == "in a stream"
    outcomes, said = asyncio.run(asked(echo, tmp_path, place, stream=stream, by_bearer=by_bearer), debug=True)
    mine = (BEARER,) if by_bearer else (ACCESS, SECRET, TOKEN)
    assert_keys_are_nowhere(tmp_path, [*said, caplog.text], mine)
    (outcome,) = outcomes
    # A binary message that a key was struck out of is no whole one any more.
    assert (outcome.status == "incomplete") if stream else ("[key]" in repr(outcome))


def assert_keys_are_nowhere(folder: Path, said: list[str], keys: tuple[str, ...] = CANARIES) -> None:
    written = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(path.endswith("data.mdb") for path in written)
    assert any(path.endswith(".jsonl") for path in written)
    everything = {**written, **{f"said {number}": text.encode() for number, text in enumerate(said)}}
    forms = [form.encode() for key in keys for form in forms_of(key)]
    assert [(where, form) for where, data in everything.items() for form in forms if form in data] == []
