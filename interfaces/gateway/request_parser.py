"""Reads what a request asks for: its body by its dialect, its model, and its run and trial from headers and path.

Owns which headers and parts of a path say what about a call. Knows no caller and no engine.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from ...engine.call import TRIAL_MAX
from ...providers.llm.serve_dialect import RequestRefusal, ServedRequest
from ...providers.llm.serve_naming import model_named
from ..http.bodies import object_of
from ..http.http_request import HttpRequest
from .offered_models import check_reached
from .paths import DIALECTS, GENERATE, RUN_NAME, RequestPath

# How many names of models are cached, for each family; a longer name is resolved anew every time.
_NAMES_KEPT = 256
_SWITCH_S = 0.0005
_NAME_KEPT_CHARS = 200


class Question(Struct):
    """What one request asks for: the call as read (`asked`), the name of its protocol (`family`) and the caller's
    `run`. `trial`: the first trial number that its client gave, None: it gave none. `idempotency`: the
    Idempotency-Key header, empty: there is none; `digest`: the body's SHA-256 if there is one."""

    asked: ServedRequest
    family: str
    run: str
    trial: int | None
    idempotency: str
    digest: bytes


class RequestParser:
    """The reader of requests, by their dialects. `names` maps clients' names to models; `unreached`: providers that
    were not set up; `is_provider`: whether a provider of that name exists."""

    def __init__(self, names: Mapping[str, str], unreached: frozenset[str], is_provider: Callable[[str], bool]) -> None:
        self.unreached = unreached
        self._is_provider = is_provider
        self._turn = asyncio.Lock()
        # One thread: several would share one interpreter, and each would hold up the loop in its turn.
        self._reader = ThreadPoolExecutor(1, "long bodies")
        # Functions that return the model for a name, by dialect.
        self._named = {name: self._names_of(dialect.family, names) for name, dialect in DIALECTS.items()}

    def question(self, request: HttpRequest, way: RequestPath, body: bytes) -> Question:
        """Returns what a request's body, headers and path ask for. Raises RequestRefusal, ConfigurationError."""
        fields = object_of(body)
        if way.dialect == GENERATE:
            fields = {**fields, "model": way.model, "stream": way.is_streamed}
        elif way.model:
            fields = {**fields, "model": way.model}
        dialect = DIALECTS[way.dialect]
        served = dialect.read(fields, self._named[way.dialect])
        headers = request.seen.headers
        run = _run_of(request, way) if "x-millstream-run" in headers else way.run
        trial = _trial_of(request, served.count) if "x-millstream-trial" in headers else None
        idempotency, digest = "", b""
        if "idempotency-key" in headers:
            idempotency, digest = request.header("idempotency-key") or "", hashlib.sha256(body).digest()
        return Question(served, dialect.family, run, trial, idempotency, digest)

    @asynccontextmanager
    async def in_thread(self) -> AsyncIterator[Callable[..., asyncio.Future[Any]]]:
        """Gives a function that runs another in the thread for long bodies, during the block; one block at a time."""
        async with self._turn, _frequent_switches():
            yield partial(asyncio.get_running_loop().run_in_executor, self._reader)

    def close(self) -> None:
        self._reader.shutdown(wait=False)

    def model(self, way: RequestPath) -> str:
        """Returns the model that a path names. Raises RequestRefusal."""
        return self._named[way.dialect](way.model)

    def _names_of(self, family: str, names: Mapping[str, str]) -> Callable[[str], str]:
        def resolve(word: str) -> str:
            model = model_named(word, family, names, self._is_provider)
            check_reached(word, model, self.unreached)
            return model

        cached = lru_cache(_NAMES_KEPT)(resolve)

        def named(word: str) -> str:
            return cached(word) if len(word) <= _NAME_KEPT_CHARS else resolve(word)

        return named


@asynccontextmanager
async def _frequent_switches() -> AsyncIterator[None]:
    """Lets threads switch every 0.5 ms instead of 5 during the block, since each ready socket has to win the
    interpreter's lock from the thread that reads a body."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _trial_of(request: HttpRequest, count: int) -> int:
    """Returns the first of `count` trial numbers that a client gives, from 0. Raises RequestRefusal."""
    text = request.header("x-millstream-trial") or ""
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) + count > TRIAL_MAX:
        raise RequestRefusal("X-Millstream-Trial: expected a whole number, 0 or more", "X-Millstream-Trial")
    return int(text)


def _run_of(request: HttpRequest, way: RequestPath) -> str:
    """Returns the run's name from header or path; empty: neither has one. Raises RequestRefusal if they differ."""
    name = request.header("x-millstream-run") or ""
    if name and not RUN_NAME.fullmatch(name):
        raise RequestRefusal(
            "X-Millstream-Run: expected up to 100 letters, digits, dots and dashes", "X-Millstream-Run"
        )
    if name and way.run not in ("", name):
        raise RequestRefusal(f"the path says run {way.run}, X-Millstream-Run {name}: send one", "X-Millstream-Run")
    return name or way.run
