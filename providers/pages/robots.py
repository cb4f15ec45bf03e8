"""Reads robots.txt once for each host through the engine, and remembers the rules of many hosts.

Owns what RFC 9309 requires if a robots.txt can't be read. The reader acts on the permissions.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from ...engine.call import WEB, Call, Failure, Outcome, PageResponse
from ...engine.store.cache import derived_key
from .endpoint import CRAWL_DELAY_MAX_S, POLICY, QUICK_S, WITHIN_S
from .extraction import Extraction
from .hop import ROBOT_NAME
from .page import PageStatus
from .robots_rules import RobotsVerdict
from .urls import UrlError, WebUrl, join_url, parse_url

_Derived = TypeVar("_Derived")
Ask = Callable[[Call], Awaitable[Outcome]]
Refusal = tuple[PageStatus, str]
"""What becomes of a page that may not be fetched, and why."""
REDIRECTS_MAX = 5
# The seconds for one host's robots.txt with all its redirects.
ROBOTS_READ_S = 5.0
_HOSTS_MAX, _BYTES_MAX = 2_000, 8 << 20


class DerivedStore(Protocol):
    """A store of values that were derived from stored bodies. `derived` returns None for an unknown key."""

    def derived(self, key: bytes) -> bytes | None: ...

    def keep(self, key: bytes, value: bytes) -> None: ...


class DerivedValues:
    """The values that workers derive from stored bodies. If two ask for one at the same time, it is made once."""

    def __init__(self, store: DerivedStore) -> None:
        self._store = store
        self._turns = WeakValueDictionary[bytes, asyncio.Lock]()

    async def get(
        self, kind: type[_Derived], body_hash: str, how: str, make: Callable[[], Awaitable[_Derived]]
    ) -> _Derived:
        """Returns the value of this kind that was made of a body in this way, from the store if it can be read there,
        else from `make`."""
        key = derived_key(bytes.fromhex(body_hash), how.encode("utf-8", "surrogateescape"))
        # A key that nobody waits for uses no memory.
        async with self._turns.setdefault(key, asyncio.Lock()):
            if (stored := self._store.derived(key)) is not None:
                try:
                    return msgspec.msgpack.decode(stored, type=kind)
                except msgspec.DecodeError:
                    pass
            value = await make()
            self._store.keep(key, msgspec.msgpack.encode(value))
            return value


class Trail:
    """The calls made for one page or one robots.txt so far, whether one of them was sent, and the seconds they took."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.is_sent = False
        self.spent_s = 0.0

    def took(self, outcome: Outcome) -> Outcome:
        """Adds a call; one hop costs its page no waits for a lane or for our own machine."""
        retries = min(max(0, outcome.attempts - 1), POLICY.attempts_max - 1)
        is_sent = not outcome.cached and outcome.attempts > 0
        self.add((outcome.key,) if outcome.key else (), (outcome.latency_ms or 0.0) / 1000 + retries * QUICK_S, is_sent)
        return outcome

    def add(self, keys: Iterable[str], spent_s: float, is_sent: bool) -> None:
        self.keys += [key for key in keys if key not in self.keys]
        self.spent_s += spent_s
        self.is_sent = self.is_sent or is_sent


class HostRules(Struct, frozen=True):
    """The rules of one host. `refusal`: why none of its pages may be fetched; `file`: its robots.txt, which decides
    about each page; `trail`: the calls that read it."""

    trail: Trail
    refusal: Refusal | None = None
    file: PageResponse | None = None
    file_hash: str = ""

    @property
    def size(self) -> int:
        return len(self.file.body) if self.file is not None else 0


class Robots:
    """The rules of hosts, each read once and remembered up to a bounded number of hosts and bytes."""

    def __init__(self, ask: Ask, derived: DerivedValues, extraction: Extraction) -> None:
        self._ask = ask
        self._derived = derived
        self._extraction = extraction
        self._known: OrderedDict[str, HostRules] = OrderedDict()
        self._size = 0
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    def __repr__(self) -> str:
        return f"<Robots [{len(self._known)} hosts known, {self._size:,} bytes]>"

    async def verdict(self, url: WebUrl, page: Trail, *, is_new: bool) -> tuple[Refusal | None, float]:
        """Returns why a page may not be fetched, None if it may, and the seconds of the pause that its host asks for, 0
        for none. Adds to the page's trail what reading (`is_new`: of a host that is new in it) and judging the
        robots.txt cost, also if another page paid them, so that a repeated page ends in the same way."""
        rules, is_sent = await self._rules(url)
        page.add(rules.trail.keys, rules.trail.spent_s if is_new else 0.0, is_sent)
        if rules.refusal is not None or rules.file is None:
            return rules.refusal, 0.0
        file = rules.file
        how = f"robots {self._extraction.robots_version} {ROBOT_NAME} {file.encoding} {url.target}"
        judged = await self._derived.get(
            RobotsVerdict, rules.file_hash, how, lambda: self._extraction.judge(file, url.text)
        )
        page.spent_s += judged.took_s
        delay_s = min(judged.delay_s, CRAWL_DELAY_MAX_S)
        if judged.is_allowed:
            return None, delay_s
        reason = f"can't be judged, which forbids everything: {judged.lack}" if judged.lack else "forbids it to robots"
        return ("disallowed", f"{url.robots} {reason}"), delay_s

    async def _rules(self, url: WebUrl) -> tuple[HostRules, bool]:
        async with self._turns.setdefault(url.origin, asyncio.Lock()):
            remembered = self._known.get(url.origin)
            if remembered is not None:
                self._known.move_to_end(url.origin)
                return remembered, False
            rules = await self._read(url)
            self._remember(url.origin, rules)
            return rules, rules.trail.is_sent

    def _remember(self, origin: str, rules: HostRules) -> None:
        self._known[origin] = rules
        self._size += rules.size
        while len(self._known) > _HOSTS_MAX or self._size > _BYTES_MAX:
            _, oldest = self._known.popitem(last=False)
            self._size -= oldest.size

    async def _read(self, url: WebUrl) -> HostRules:
        at = parse_url(url.robots)
        trail = Trail()
        for _ in range(REDIRECTS_MAX + 1):
            left_s = round(ROBOTS_READ_S - trail.spent_s, 3)
            if left_s <= 0:
                detail = f"its redirects took more than {ROBOTS_READ_S:g} s"
                return HostRules(trail, _refusal_of(Failure("timeout", detail), at))
            outcome = trail.took(await self._ask(Call(WEB, at.text, extra={WITHIN_S: left_s})))
            if outcome.failure is not None:
                return HostRules(trail, _refusal_of(outcome.failure, at))
            assert outcome.reply is not None and outcome.reply.fetched is not None
            fetched = outcome.reply.fetched
            if fetched.status < 300:
                return HostRules(trail, None, fetched if fetched.body.strip() else None, outcome.reply.raw_hash)
            try:
                at = join_url(at, fetched.location or "")
            except UrlError:
                break
        # The RFC treats this like a host without rules.
        return HostRules(trail)


def _refusal_of(failure: Failure, at: WebUrl) -> Refusal | None:
    """Returns why a host's pages may not be fetched if its robots.txt can't be read; None if they may be."""
    detail = f"{at.text}: {failure.detail}"
    if failure.kind == "rejected" and failure.status is None:
        return "unreachable", failure.detail  # the guard refuses the host, whatever the page
    if failure.kind == "rate_limited":
        return "blocked", detail
    if failure.kind == "empty" or (failure.status is not None and 400 <= failure.status < 500):
        return None
    if failure.kind in ("dns", "connect", "not_cached"):
        # The host itself can't be reached.
        return "unreachable", detail
    return "disallowed", f"what can't be had of a host's rules forbids everything: {detail}"
