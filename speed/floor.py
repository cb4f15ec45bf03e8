"""The floor: the least a Python program can do for a call and still do all of it, in a straight line.

`python -m millstream.speed.floor URL COUNT LENGTHS`; LENGTHS is the length of every prompt, or a file with a length a
line.

For each call: a body with sorted keys, its SHA-256, a look into LMDB (a miss), the request over a kept connection with
a deadline, the response through llhttp, a typed decode, a put into LMDB (groups of 512, one fsync at the end) and a
line of JSON on disk. No quota, no retry, no events, no journal that survives a kill: that is what an engine adds, and
the distance to this rate is what it costs. Uses nothing of the engine.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import httptools
import lmdb
import msgspec
import orjson
import uvloop

IN_FLIGHT = 256
PROMPT_CHARS = 1800


class Message(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    message: Message
    finish_reason: str | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(msgspec.Struct):
    choices: list[Choice]
    usage: Usage | None = None


class Connection(asyncio.Protocol):
    """A kept connection with one request at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        pass

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        parts, self.parts = self.parts, []
        self.deadline.cancel()
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(parts[0] if len(parts) == 1 else b"".join(parts))

    def send(self, head: bytes, body: bytes) -> asyncio.Future[bytes]:
        self.answer = self.loop.create_future()
        self.deadline = self.loop.call_later(600, self.answer.cancel)
        self.transport.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)  # type: ignore[attr-defined]
        return self.answer


async def send_all(url: str, count: int, folder: Path, lengths: list[int]) -> int:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    head = (
        f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        "Authorization: Bearer none\r\nContent-Length: "
    ).encode()
    filler = "arguments for and against " * (max(lengths) // 26 + 2)
    waiting = iter(range(count))
    decode = msgspec.json.Decoder(Completion).decode
    store = lmdb.open(str(folder / "cache"), map_size=4 << 30, sync=False)
    rows = open(folder / "rows.jsonl", "wb", buffering=1 << 18)  # noqa: ASYNC230, SIM115  (open as long as the loop)
    new: list[tuple[bytes, bytes]] = []
    done = 0

    def flush() -> None:
        if new:
            with store.begin(write=True) as writing:
                writing.cursor().putmulti(new)
            new.clear()

    # A function of its own: a transaction whose name outlives it in a suspended coroutine keeps its reader's slot.
    def look_up(key: bytes) -> bytes | None:
        with store.begin() as reading:
            stored: bytes | None = reading.get(key)
            return stored

    async def work() -> None:
        nonlocal done
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, host, port)
        for number in waiting:
            prompt = f"{number} {filler}"[: lengths[number % len(lengths)]]
            message = {"model": "fixed", "messages": [{"role": "user", "content": prompt}]}
            body = orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
            key = hashlib.sha256(body).digest()
            if look_up(key) is not None:
                raise SystemExit("a hit in an empty store")
            began = loop.time()
            raw = await connection.send(head, body)
            reply = decode(raw)
            usage = reply.usage or Usage()
            new.append((key, raw))
            if len(new) >= 512:
                flush()
            row = {
                "id": number,
                "key": key.hex(),
                "status": "ok",
                "text": reply.choices[0].message.content,
                "usage": {"input": usage.prompt_tokens, "output": usage.completion_tokens},
                "cached": False,
                "attempts": 1,
                "latency_ms": (loop.time() - began) * 1e3,
            }
            rows.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            done += 1

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    flush()
    store.sync(True)
    rows.close()
    return done


def main() -> None:
    url, count, lengths = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    each = [int(line) for line in ([lengths] if lengths.isdigit() else Path(lengths).read_text().split())]
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
        done = uvloop.run(send_all(url, count, Path(name), each))
    if done != count:
        raise SystemExit(f"{done} of {count} answered")


if __name__ == "__main__":
    main()
