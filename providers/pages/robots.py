"""Reads robots.txt once for each host through the engine, and remembers the rules of many hosts.

Owns what RFC 9309 requires if a robots.txt can't be read. The reader acts on the permissions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from ...engine.call import WEB, Call, Failure, Outcome, PageResponse
from ...engine.store.cache import derived_key
from .endpoint import CRAWL_DELAY_MAX_S, POLICY, QUICK_S, WITHIN_S
from .extraction import Extraction
from .hop import ROBOT_NAME
from .keyed_lock import KeyedLock
from .page import PageStatus
from .robots_rules import RobotsVerdict
from .urls import UrlError, WebUrl, join_url, parse_url

_Derived = TypeVar("_Derived")
Ask = Callable[[Call], Awaitable[Outcome]]
REDIRECTS_MAX = 5
# The seconds for one host's robots.txt with all its redirects.
ROBOTS_READ_S = 5.0
_HOSTS_MAX, _BYTES_MAX = 2_000, 8 << 20


class DerivedStore(Protocol):
    """A store of values that were derived from stored bodies. `derived` returns None for an unknown key."""

    def derived(self, key: bytes) -> bytes | None: ...

    def keep(self, key: bytes, value: bytes) -> None: ...


def derived_in(store: DerivedStore, key: bytes, kind: type[_Derived]) -> _Derived | None:
    """Returns the value of this kind in a store; None if there is none that can be read."""
    kept = store.derived(key)
    try:
        return None if kept is None else msgspec.msgpack.decode(kept, type=kind)
    except msgspec.DecodeError:
        return None


class HostRules(Struct, frozen=True):
    """The rules of one host. `refusal`: why none of its pages may be fetched; `file`: its robots.txt, which decides
    about each page; `took_s`: the seconds that reading it cost."""

    keys: tuple[str, ...] = ()
    refusal: tuple[PageStatus, str] | None = None
    file: PageResponse | None = None
    file_hash: str = ""
    took_s: float = 0.0

    @property
    def size(self) -> int:
        return len(self.file.body) if self.file is not None else 0


class PagePermission(Struct, frozen=True):
    """Whether a page may be fetched; `refusal` says why not. `delay_s`: the pause that its host asks for, 0 for none.
    `is_sent`: its robots.txt was requested just now. `read_s` and `judged_s`: the seconds that reading and judging it
    cost, also if another page paid them, so that a repeated page ends in the same way."""

    keys: tuple[str, ...]
    refusal: tuple[PageStatus, str] | None = None
    delay_s: float = 0.0
    is_sent: bool = False
    read_s: float = 0.0
    judged_s: float = 0.0


class Robots:
    """The rules of hosts, each read once and remembered up to a bounded number of hosts and bytes."""

    def __init__(self, ask: Ask, derived: DerivedStore, extraction: Extraction) -> None:
        self._ask = ask
        self._derived = derived
        self._extraction = extraction
        self._known: OrderedDict[str, HostRules] = OrderedDict()
        self._size = 0
        self._turns = KeyedLock()

    def __repr__(self) -> str:
        return f"<Robots [{len(self._known)} hosts known, {self._size:,} bytes]>"

    async def verdict(self, url: WebUrl) -> PagePermission:
        rules, is_sent = await self._rules(url)
        if rules.refusal is not None or rules.file is None:
            return PagePermission(rules.keys, rules.refusal, is_sent=is_sent, read_s=rules.took_s)
        judged = await self._judged(rules.file, rules.file_hash, url)
        refusal: tuple[PageStatus, str] | None = None
        if not judged.is_allowed:
            reason = (
                f"can't be judged, which forbids everything: {judged.lack}" if judged.lack else "forbids it to robots"
            )
            refusal = ("disallowed", f"{url.robots} {reason}")
        delay_s = min(judged.delay_s, CRAWL_DELAY_MAX_S)
        return PagePermission(rules.keys, refusal, delay_s, is_sent, rules.took_s, judged.took_s)

    async def _judged(self, file: PageResponse, file_hash: str, url: WebUrl) -> RobotsVerdict:
        how = f"robots {self._extraction.robots_version} {ROBOT_NAME} {file.encoding} {url.target}".encode()
        key = derived_key(bytes.fromhex(file_hash), how)
        judged = derived_in(self._derived, key, RobotsVerdict)
        if judged is None:
            judged = await self._extraction.judge(file, url.text)
            self._derived.keep(key, msgspec.msgpack.encode(judged))
        return judged

    async def _rules(self, url: WebUrl) -> tuple[HostRules, bool]:
        async with self._turns.at(url.origin):
            remembered = self._known.get(url.origin)
            if remembered is not None:
                self._known.move_to_end(url.origin)
                return remembered, False
            rules, is_sent = await self._read(url)
            self._remember(url.origin, rules)
            return rules, is_sent

    def _remember(self, origin: str, rules: HostRules) -> None:
        self._known[origin] = rules
        self._size += rules.size
        while len(self._known) > _HOSTS_MAX or self._size > _BYTES_MAX:
            _, oldest = self._known.popitem(last=False)
            self._size -= oldest.size

    async def _read(self, url: WebUrl) -> tuple[HostRules, bool]:
        at = parse_url(url.robots)
        keys: list[str] = []
        is_sent, took_s = False, 0.0
        for _ in range(REDIRECTS_MAX + 1):
            left_s = round(ROBOTS_READ_S - took_s, 3)
            if left_s <= 0:
                detail = f"its redirects took more than {ROBOTS_READ_S:g} s"
                return HostRules(tuple(keys), _refusal_of(Failure("timeout", detail), at), took_s=took_s), is_sent
            outcome = await self._ask(Call(WEB, at.text, extra={WITHIN_S: left_s}))
            took_s += cost_s(outcome)
            is_sent = is_sent or (not outcome.cached and outcome.attempts > 0)
            if outcome.key:
                keys.append(outcome.key)
            if outcome.failure is not None:
                return HostRules(tuple(keys), _refusal_of(outcome.failure, at), took_s=took_s), is_sent
            assert outcome.reply is not None and outcome.reply.fetched is not None
            fetched = outcome.reply.fetched
            if fetched.status < 300:
                file = fetched if fetched.body.strip() else None
                return HostRules(tuple(keys), file=file, file_hash=outcome.reply.raw_hash, took_s=took_s), is_sent
            try:
                at = join_url(at, fetched.location or "")
            except UrlError:
                break
        # The RFC treats this like a host without rules.
        return HostRules(tuple(keys), took_s=took_s), is_sent


def cost_s(outcome: Outcome) -> float:
    """Returns the seconds that a hop costs its page, without the waits for a lane or our own machine."""
    retries = min(max(0, outcome.attempts - 1), POLICY.attempts_max - 1)
    return (outcome.latency_ms or 0.0) / 1000 + retries * QUICK_S


def _refusal_of(failure: Failure, at: WebUrl) -> tuple[PageStatus, str] | None:
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
