"""Sends one answer to a client as events: pieces as they are received, the rest when the answer is proven whole.

The head is sent with the first piece, or after ten seconds, so that a failure before is an error with a status. Knows a
dialect only by its AnswerStream, and no engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import structs

from ...engine.call import Outcome
from ...providers.llm.serve_dialect import AnswerStream, Problem, RequestRefusal
from ..http.http_connection import Connection

PING_S = 10.0
_OTHERWISE = Problem(
    502, "incomplete", "incomplete: the answer broke off, and when asked again the model said something else: ask again"
)


class StreamedText:
    """The text of an answer as received, and the part of it already sent to the client. A new attempt that begins with
    the same text continues where that ends; one with another text is not sent. A piece costs its own length only."""

    def __init__(self) -> None:
        self.is_news = asyncio.Event()
        self._pieces: list[str] = []
        self._news: list[str] = []
        # The text that a new attempt has to repeat before anything new, and how much of it was repeated.
        self._again = ""
        self._repeated = 0
        self._is_same = True

    @property
    def said(self) -> str:
        return "".join(self._pieces)

    def hear(self, piece: str | None) -> None:
        if piece is None:
            self._news.clear()
            self._again, self._repeated, self._is_same = self.said, 0, True
        elif self._is_same:
            self._add(piece)

    def take(self) -> str:
        """Returns the text that is new since the last call, which counts as sent; empty: there is none."""
        self.is_news.clear()
        piece = "".join(self._news)
        self._news.clear()
        if piece:
            self._pieces.append(piece)
        return piece

    def is_begun_by(self, outcomes: Sequence[Outcome]) -> bool:
        reply = outcomes[0].reply
        return reply is not None and reply.text.startswith(self.said)

    def _add(self, piece: str) -> None:
        if self._repeated < len(self._again):
            same = piece[: len(self._again) - self._repeated]
            self._is_same = self._again.startswith(same, self._repeated)
            self._repeated += len(same)
            piece = piece[len(same) :]
        if self._is_same and piece:
            self._news.append(piece)
            self.is_news.set()


async def stream_out(
    back: Connection,
    fields: str,
    request_id: str,
    stream_of: Callable[[Sequence[Outcome]], AnswerStream],
    saying: StreamedText,
    work: asyncio.Task[Sequence[Outcome]],
    *,
    ping_s: float,
) -> Problem | None:
    """Streams the answer that `work` returns, and returns None, or the problem with which the stream ended. Raises the
    errors of `work` as long as the head was not sent. `stream_of` is given the outcomes where they are there before
    the head; else none. A ping is sent after `ping_s` seconds without text."""
    news, stream = asyncio.ensure_future(saying.is_news.wait()), stream_of(())
    try:
        while not work.done():
            await asyncio.wait((work, news), timeout=ping_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                break
            has_begun = back.has_begun
            begun, piece = b"" if has_begun else stream.begin(), saying.take()
            data = begun + (stream.text(piece) if piece else stream.ping())
            await (back.write(data) if has_begun else back.begin(fields, data))
            if news.done():
                news = asyncio.ensure_future(saying.is_news.wait())
    finally:
        news.cancel()
    if not back.has_begun:
        outcomes = work.result()
        stream = stream_of(outcomes)
        await back.begin(fields, stream.begin() + stream.end(outcomes))
        back.end()
        return None
    problem = None
    try:
        outcomes = work.result()
        problem = None if saying.is_begun_by(outcomes) else _OTHERWISE
    except RequestRefusal as refused:
        problem = refused.problem
    if problem is not None:
        problem = structs.replace(problem, request_id=request_id)
    await back.write(stream.end(outcomes) if problem is None else stream.fail(problem))
    back.end()
    return problem
