"""A canary key through servers that give it back: it is in nothing that is said or written (every fault of the table:
test_faults_over_engine)."""

from __future__ import annotations

import asyncio
import traceback
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import chat_shapes
import orjson
import pytest
import response_shapes
from endpoints import CANARY
from raw_server import RawServer, Visit, http
from run_sink import RunSink

from millstream import Call, Engine, Lane, Outcome, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Request, SendError, send
from millstream.engine.runs.run_folder import RunFolder
from millstream.providers.transport.secrets import SECRET_MIN

MODEL = "openai/steady"
# One for each way to send a key, and for each shape of an answer.
MODELS = (MODEL, "openai-responses/steady", "azure/steady")
KEYS = {"OPENAI_API_KEY": CANARY, "AZURE_OPENAI_API_KEY": CANARY}
POLICY = RetryPolicy(attempts_max=2, wait_min_s=0.01, wait_max_s=0.02, patience_s=0.5, probe_every_s=0.05)


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


def forms_of(key: str) -> Iterator[bytes]:
    """A key as it is, in a URL, in JSON, in digits, and in base64 at each of its three alignments."""
    yield key.encode()
    yield quote(key, safe="").encode()
    yield quote(key).encode()
    yield escaped(key).encode()
    yield key.replace("/", "\\/").encode()
    yield key.encode().hex().encode()
    for lead in range(3):
        # The first and last signs depend on the bytes beside the key.
        yield b64encode(b"?" * lead + key.encode())[4:-4]


def test_each_form_of_the_key_would_be_found() -> None:
    for lead in ("", "B", "Be", "Bearer ", "user:"):
        assert any(form in b64encode(f"{lead}{CANARY}".encode()) for form in forms_of(CANARY))
    assert len(CANARY) > SECRET_MIN and len(set(forms_of(CANARY))) == 9


def row(outcome: Outcome) -> bytes:
    """More than any benchmark writes of an outcome."""
    reply, failure = outcome.reply, outcome.failure
    text = "" if reply is None else reply.text
    detail = "" if failure is None else failure.detail
    return orjson.dumps({"id": outcome.key, "text": text, "error": detail, "all": repr(outcome)})


async def ask_and_tell(base_url: str, folder: Path, prompt: str, *, stream: bool = False, model: str = MODEL) -> str:
    """One call through everything, and whatever is said of it: representations and tracebacks."""
    settings = Settings(
        lanes=(Lane(model, timeout_s=0.3),),
        base_url=base_url,
        cache=folder / "cache",
        environment=KEYS,
        policy=POLICY,
    )
    said: list[str] = []
    with RunFolder(folder / "run", {"model": model}) as run:
        async with Engine(settings=settings) as engine:
            said.append(repr(engine))
            try:
                said += [repr(one) async for one in engine.run([Call(model, prompt, stream=stream)], RunSink(run, row))]
            except Stopped as error:
                said += ["".join(traceback.format_exception(error)), repr(error.stops)]
            route = engine.scheduler.routes.of(model)
            said += [repr(engine), repr(engine.scheduler), repr(route)]
            try:
                await send(route.endpoint, Request("http://127.0.0.1:1/v1", "", b"", b"{}", b"", b""))
            except SendError as error:
                said += ["".join(traceback.format_exception(error)), repr(error)]
    return "\n".join(said)


def assert_key_is_nowhere(folder: Path, *said: str) -> None:
    written = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(path.endswith("data.mdb") for path in written)
    assert any(path.endswith(".jsonl") for path in written)
    everything = {**written, **{f"said {number}": text.encode() for number, text in enumerate(said)}}
    found = [(where, form) for where, data in everything.items() for form in forms_of(CANARY) if form in data]
    assert found == []


async def echo(visit: Visit) -> None:
    """Gives back the key it was sent, in every form and around the place where details are cut."""
    while (request := await visit.request()) is not None:
        assert f"Authorization: Bearer {CANARY}\r\n".encode() in request or f"api-key: {CANARY}\r\n".encode() in request
        forms = f"{CANARY} {quote(CANARY, safe='')} {b64encode(CANARY.encode()).decode()} {CANARY.encode().hex()}"
        said = f"{forms} {'x' * (390 - len(forms))} {CANARY} {forms}"
        chat = f'"choices":[{{"message":{{"content":"{said}"}},"delta":{{"content":"{said}"}},"finish_reason":"stop"}}]'
        if b"in an answer" in request:
            await visit.send(http(f"{{{chat}}}".encode()))
        elif b"in a stream" in request:
            await visit.send(http(f"data: {{{chat}}}\n\ndata: [DONE]\n\n".encode()))
        elif b"in escapes" in request:
            said = f"{escaped(CANARY)} {CANARY.replace('/', chr(92) + '/')} {CANARY.replace('7', escaped('7'))}"
            await visit.send(http(f'{{"error":{{"message":"{said}","code":"{said}"}}}}'.encode(), status="400 Bad"))
        elif b"in a redirect" in request:
            await visit.send(
                http(b"", f"Location: http://127.0.0.1:1/{quote(CANARY)}?key={CANARY}", status="307 Moved")
            )
        elif b"in no HTTP" in request:
            await visit.send(f"HTTP/9.9 {forms}\r\n\r\n".encode())
            return
        elif b"in a header" in request:
            await visit.send(http(b"{}", f"Content-Length: {CANARY}", f"X-Request-Id: {CANARY}"))
            return
        elif b"in plain text" in request:
            await visit.send(http(said.encode(), status="500 Oops"))
        else:
            await visit.send(http(f'{{"error":{{"message":"{said}","code":"{CANARY}"}}}}'.encode(), status="400 Bad"))


PLACES = ["an answer", "a stream", "an error", "plain text", "escapes", "a redirect", "no HTTP", "a header"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("place", [f"in {place}" for place in PLACES])
def test_a_server_that_gives_the_key_back_does_not_bring_it_to_light(place: str, model: str, tmp_path: Path) -> None:
    async def scenario() -> str:
        async with RawServer(echo) as server:
            return await ask_and_tell(server.base_url, tmp_path, place, stream=place == "in a stream", model=model)

    said = asyncio.run(scenario())
    assert_key_is_nowhere(tmp_path, said)
    is_answer = place in ("in an answer", "in a stream") and model == "openai-responses/steady"
    if place not in ("in no HTTP", "in a header") and not is_answer:  # there, chat completions are no answers
        assert "[key]" in said


def test_a_word_that_a_local_server_is_given_as_its_key_stays_in_answers(tmp_path: Path) -> None:
    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(http(b'{"choices":[{"message":{"content":"an ollama says A"}}]}'))

    async def scenario() -> Outcome:
        async with RawServer(handler) as server:
            settings = Settings(base_url=server.base_url, cache=tmp_path, environment={"OPENAI_API_KEY": "ollama"})
            async with Engine(settings=settings) as engine:
                return await engine.ask(Call(MODEL, "x"))

    outcome = asyncio.run(scenario())
    assert outcome.reply is not None and outcome.reply.text == "an ollama says A"


# --- spelled out in pieces ---


async def spell(visit: Visit) -> None:
    """An answer in whose bytes the key is nowhere, and in whose text it would be."""
    first, last = CANARY[:20], CANARY[20:]
    responses = [{"type": "output_text", "text": part, "annotations": []} for part in (first, last)]
    message = {"type": "message", "role": "assistant", "content": responses}
    while (request := await visit.request()) is not None:
        if b"/responses" in request:
            body = response_shapes.whole(output=[message])
            stream = b"".join([response_shapes.CREATED, *map(response_shapes.delta, (first, last))])
            stream += response_shapes.event("response.completed", response=response_shapes.response(output=[message]))
        else:
            parts = [{"type": "text", "text": part} for part in (first, last)]
            body = chat_shapes.whole(choices=chat_shapes.message(parts))
            pieces = (chat_shapes.chunk({"content": part}) for part in (first, last))
            stream = b"".join([*pieces, chat_shapes.chunk({}, "stop"), chat_shapes.DONE])
        await visit.send(http(stream if b'"stream":true' in request else body))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", MODELS)
def test_an_answer_that_spells_the_key_out_in_pieces_is_dropped(model: str, stream: bool, tmp_path: Path) -> None:
    async def scenario() -> str:
        async with RawServer(spell) as server:
            return await ask_and_tell(server.base_url, tmp_path, "x", stream=stream, model=model)

    said = asyncio.run(scenario())
    assert_key_is_nowhere(tmp_path, said)
    assert "spells out the key" in said and "rejected" in said
    stored = (tmp_path / "cache" / "data.mdb").read_bytes()
    assert CANARY[:20].encode() not in stored and CANARY[20:].encode() not in stored
