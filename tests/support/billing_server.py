"""A provider that computes its bill from what it receives, with a tokenizer, a price and a clock of its own.

It shares nothing with the program: only sockets and JSON of the standard library. The first part of a path says what
the usage of its answers looks like, as in `/empty/chat/completions`; the bill is the same whatever is reported.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

# Dollars per token, of prompts and of answers.
READ, WRITTEN = 1e-6, 2e-6
# What a document holds, 20 pages, and what a search of the provider's own adds.
DOCUMENT_TOKENS, IMAGE_TOKENS, SEARCH_TOKENS = 30_000, 1_500, 30_000
REFERENCES = {
    "file_id",
    "fileUri",
    "file_url",
    "url",
    "file_data",
    "previous_response_id",
    "conversation",
    "cachedContent",
}
WORDS = "word " * 100
ANSWER_TOKENS = 100
_ABSENT = object()

Counts = Callable[[int, int], Any]
USAGES: dict[str, Counts] = {
    "whole": lambda read, written: (read, written, read + written),
    "empty": lambda read, written: (_ABSENT, _ABSENT, _ABSENT),
    "absent": lambda read, written: _ABSENT,
    "null": lambda read, written: None,
    "list": lambda read, written: [],
    "input": lambda read, written: (read, _ABSENT, _ABSENT),
    "output": lambda read, written: (_ABSENT, written, _ABSENT),
    "total": lambda read, written: (_ABSENT, _ABSENT, read + written),
    "input and total": lambda read, written: (read, _ABSENT, read + written),
    "nulls": lambda read, written: (None, None, None),
    "zeros": lambda read, written: (0, 0, 0),
    "no output": lambda read, written: (read, 0, read),
    "no input": lambda read, written: (0, written, written),
    "negative": lambda read, written: (-read, -written, -read - written),
    "texts": lambda read, written: (str(read), str(written), str(read + written)),
    "halves": lambda read, written: (0.5, 0.5, 0.5),
    "switches": lambda read, written: (True, True, True),
    "huge": lambda read, written: (1e30, 1e30, 1e30),
    # Those of a stream's first event alone, as the first word was written.
    "begun": lambda read, written: (read, 1, read + 1),
}
NAMES = {
    "chat": ("prompt_tokens", "completion_tokens", "total_tokens"),
    "responses": ("input_tokens", "output_tokens", "total_tokens"),
    "messages": ("input_tokens", "output_tokens", "total_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
}


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


def tokens_of(body: dict[str, Any]) -> int:
    """What this provider counts for a request: four characters a token, whole documents, what it searches itself."""
    tokens = 10
    for name, value in _leaves({key: value for key, value in body.items() if key != "tools"}):
        if name in REFERENCES and isinstance(value, str):
            is_image = value.endswith(".png") or value.startswith("data:image/")
            tokens += IMAGE_TOKENS if is_image else DOCUMENT_TOKENS
        elif isinstance(value, str):
            tokens += len(value) // 4
    if "search" in json.dumps(body.get("tools", "")).lower() or "web_search_options" in body:
        tokens += SEARCH_TOKENS
    return tokens


class BillingServer:
    """The provider on a port of its own, in a thread of its own. `surcharge` is what it counts for every prompt beside
    what was sent."""

    def __init__(self, delay_s: float = 0.0, surcharge: int = 0) -> None:
        self.delay_s, self.surcharge = delay_s, surcharge
        self.calls = 0
        self.dollars = 0.0
        self.answered = threading.Event()
        self.after_first = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = head.split("\r\n")
                length = next((int(line[15:]) for line in lines if line.lower().startswith("content-length:")), 0)
                body = json.loads(await reader.readexactly(length))
                status, answer, kind = await self._answered(lines[0].split(" ")[1], body)
                told = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(answer)}\r\n\r\n"
                writer.write(told.encode() + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            writer.close()

    async def _answered(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, str]:
        return 200, *await self._answer(path, body)

    async def _answer(self, path: str, body: dict[str, Any]) -> tuple[bytes, str]:
        mode = path.split("/")[1].replace("%20", " ").replace("_", " ")
        endings = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}
        protocol = next((kind for ending, kind in endings.items() if path.endswith(ending)), "gemini")
        read, written = tokens_of(body) + self.surcharge, min(ANSWER_TOKENS, _most(body))
        # Billed when it is received: whoever hangs up pays all the same.
        self.calls += 1
        self.after_first += self.answered.is_set()
        self.dollars += read * READ + written * WRITTEN
        await asyncio.sleep(self.delay_s)
        self.answered.set()
        counts = USAGES[mode](read, written)
        if isinstance(counts, tuple):
            pairs = zip(NAMES[protocol], counts, strict=True)
            counts = {name: count for name, count in pairs if count is not _ABSENT}
            if protocol == "messages":
                counts.pop("total_tokens", None)
        is_stream = bool(body.get("stream")) or "streamGenerateContent" in path
        if not is_stream:
            return json.dumps(_whole(protocol, counts)).encode(), "application/json"
        events = _events(protocol, counts, is_begun=mode == "begun")
        return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), "text/event-stream"


def _most(body: dict[str, Any]) -> int:
    named = [
        value for name, value in _leaves(body) if name.lower().replace("_", "").endswith(("maxtokens", "outputtokens"))
    ]
    named += [value for name, value in _leaves(body) if name == "max_completion_tokens"]
    return min([value for value in named if isinstance(value, int)], default=ANSWER_TOKENS)


def _with(usage: Any, name: str) -> dict[str, Any]:
    return {} if usage is _ABSENT else {name: usage}


def _whole(protocol: str, usage: Any) -> dict[str, Any]:
    if protocol == "chat":
        choice = {"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}
        return {"choices": [choice], **_with(usage, "usage")}
    if protocol == "responses":
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": WORDS}]}
        return {"status": "completed", "output": [item], **_with(usage, "usage")}
    if protocol == "messages":
        content = [{"type": "text", "text": WORDS}]
        return {
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": "end_turn",
            **_with(usage, "usage"),
        }
    candidate = {"content": {"parts": [{"text": WORDS}], "role": "model"}, "finishReason": "STOP"}
    return {"candidates": [candidate], **_with(usage, "usageMetadata")}


def _events(protocol: str, usage: Any, *, is_begun: bool) -> list[dict[str, Any]]:
    """The events of a stream; its usage is in the last one, or with `is_begun` in the first one alone."""
    first, last = (usage, _ABSENT) if is_begun else (_ABSENT, usage)
    if protocol == "chat":
        said = {"choices": [{"index": 0, "delta": {"content": WORDS}}], **_with(first, "usage")}
        end = {"choices": [{"index": 0, "delta": {"content": "."}, "finish_reason": "stop"}]}
        return [said, end, *([] if last is _ABSENT else [{"choices": [], "usage": last}])]
    if protocol == "responses":
        return [{"type": "response.completed", "response": _whole(protocol, last)}]
    if protocol == "messages":
        return [
            {"type": "message_start", "message": {"type": "message", "content": [], **_with(first, "usage")}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": WORDS}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **_with(last, "usage")},
            {"type": "message_stop"},
        ]
    said = {"candidates": [{"content": {"parts": [{"text": WORDS}], "role": "model"}}], **_with(first, "usageMetadata")}
    return [said, _whole(protocol, last)]
