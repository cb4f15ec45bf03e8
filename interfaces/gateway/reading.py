"""What a request asks for: its body read by its dialect, its model found, its calls and their trials.

Owns which headers and parts of a path say what about a call. Sends nothing and answers nothing: handling does.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from types import MappingProxyType

from msgspec import Struct, structs

from ...engine.call import TRIAL_MAX, Call
from ...engine.scheduler import Encoded
from ...providers.table import PROVIDERS
from ...wiring import Engine
from ..dialects import anthropic_messages, gemini_generate, openai_chat, openai_responses
from ..dialects.dialect import Asked, Dialect, Problem, Refused
from ..dialects.naming import as_said_to, model_named
from .asking import Asking
from .bodies import object_of
from .callers import Caller
from .paths import CHAT, GENERATE, MESSAGES, RESPONSES, RUN_NAME, Way
from .reach import refuse_unreached, unreached
from .request import Request
from .settings import GatewaySettings
from .trials import Taken, Trials

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        CHAT: openai_chat.DIALECT,
        RESPONSES: openai_responses.DIALECT,
        MESSAGES: anthropic_messages.DIALECT,
        GENERATE: gemini_generate.DIALECT,
    }
)
_FAMILIES: Mapping[str, str] = MappingProxyType(
    {CHAT: "openai", RESPONSES: "openai-responses", MESSAGES: "anthropic", GENERATE: "gemini"}
)
# Words for models, of each family, whose meaning is kept; a longer one is looked at anew every time.
_NAMES_KEPT = 256
_SWITCH_S = 0.0005
_NAME_KEPT_CHARS = 200


class Question(Struct):
    """What one request asks for: its calls, a trial each, and the dialect's reading of it. `encoded`: in the words of
    their provider, which are the same for all of them; None: it has none."""

    asked: Asked
    calls: tuple[Call, ...]
    taken: Taken
    encoded: Encoded | None


class Reading:
    """`unreached`: providers that nobody set up."""

    def __init__(self, engine: Engine, settings: GatewaySettings, asking: Asking, trials: Trials) -> None:
        self.unreached = unreached(engine.settings, settings)
        self._engine = engine
        self._asking = asking
        self._trials = trials
        self._turn = asyncio.Lock()
        # One thread: several would share one interpreter, and each would hold up the loop in its turn.
        self._reader = ThreadPoolExecutor(1, "long bodies")
        # Who knows which model a word means, by the way it came.
        self._named = {name: self._names_of(family, settings.models) for name, family in _FAMILIES.items()}

    def question(self, request: Request, way: Way, caller: Caller, body: bytes) -> Question:
        """Raises Refused, ConfigurationError."""
        asked = self._allowed(self._read(way, body), way, caller)
        return self._numbered(request, way, caller, asked, self._asking.encoded(asked.call), _digest_of(request, body))

    async def long_question(self, request: Request, way: Way, caller: Caller, body: bytes) -> Question:
        """The same of a long body: in a thread, one at a time, whatever only this body needs."""
        async with self._turn, _frequent_switches():
            run = partial(asyncio.get_running_loop().run_in_executor, self._reader)
            asked = self._allowed(await run(self._read, way, body), way, caller)
            encoded = await run(self._asking.encoder_of(asked.call))
            digest = await run(_digest_of, request, body)
            return self._numbered(request, way, caller, asked, encoded, digest)

    def _read(self, way: Way, body: bytes) -> Asked:
        given = object_of(body)
        if way.dialect == GENERATE:
            given = {**given, "model": way.model, "stream": way.is_streamed}
        elif way.model:
            given = {**given, "model": way.model}
        return DIALECTS[way.dialect].read(given, self._named[way.dialect])

    def _allowed(self, asked: Asked, way: Way, caller: Caller) -> Asked:
        call = asked.call
        if not caller.may_ask(call.model):
            raise refused(not_allowed(call.model))
        self._asking.refuse_one_model_too_many(call.model)
        if call.extra:
            asked = as_said_to(asked, _FAMILIES[way.dialect], self._engine.family_of(call.model))
        return asked

    def _numbered(
        self, request: Request, way: Way, caller: Caller, asked: Asked, encoded: Encoded | None, digest: bytes
    ) -> Question:
        call, taken = asked.call, self._take(request, way, caller, encoded, asked.count, digest)
        calls = tuple([structs.replace(call, trial=number) if number else call for number in taken.numbers])
        return Question(asked, calls, taken, encoded)

    def close(self) -> None:
        self._reader.shutdown(wait=False)

    def model(self, way: Way) -> str:
        """The one that a path names. Raises Refused."""
        return self._named[way.dialect](way.model)

    def _take(
        self, request: Request, way: Way, caller: Caller, encoded: Encoded | None, count: int, digest: bytes
    ) -> Taken:
        said = request.header("x-millstream-trial")
        if said is not None:
            if not said.isascii() or not said.isdigit() or len(said) > 19 or int(said) + count > TRIAL_MAX:
                raise Refused("X-Millstream-Trial: expected a whole number, 0 or more", "X-Millstream-Trial")
            return Taken(tuple(range(int(said), int(said) + count)))
        run = _run_of(request, way) if "x-millstream-run" in request.seen.headers else way.run
        scope = f"{caller.settings.name}\0{run}"
        key = b"" if encoded is None else encoded.question.digest()
        return self._trials.take(scope, key, count, digest, request.header("idempotency-key") or "")

    def _names_of(self, family: str, names: Mapping[str, str]) -> Callable[[str], str]:
        def found(word: str) -> str:
            model = model_named(word, family, names, self._is_provider)
            refuse_unreached(word, model, self.unreached)
            return model

        known = lru_cache(_NAMES_KEPT)(found)

        def named(word: str) -> str:
            return known(word) if len(word) <= _NAME_KEPT_CHARS else found(word)

        return named

    def _is_provider(self, name: str) -> bool:
        settings = self._engine.settings
        return name in PROVIDERS or name in settings.providers or settings.others.provider(name) is not None


@asynccontextmanager
async def _frequent_switches() -> AsyncIterator[None]:
    """Each socket that is ready has to win the interpreter's lock from the reader: after 0.5 ms instead of 5."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _digest_of(request: Request, body: bytes) -> bytes:
    """Tells one body from another, where a client names its requests."""
    return hashlib.sha256(body).digest() if "idempotency-key" in request.seen.headers else b""


def not_allowed(model: str) -> Problem:
    return Problem(403, "forbidden", f"this caller may not ask {model}: name it in its models", "model")


def refused(problem: Problem) -> Refused:
    made = Refused(problem.message)
    made.problem = problem
    return made


def _run_of(request: Request, way: Way) -> str:
    """The run's name, from header or path; they must not differ."""
    said = request.header("x-millstream-run") or ""
    if said and not RUN_NAME.fullmatch(said):
        raise Refused("X-Millstream-Run: expected up to 100 letters, digits, dots and dashes", "X-Millstream-Run")
    if said and way.run not in ("", said):
        raise Refused(f"the path says run {way.run}, X-Millstream-Run {said}: send one", "X-Millstream-Run")
    return said or way.run
