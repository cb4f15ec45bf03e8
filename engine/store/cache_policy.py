"""Decides which stored entries a call may use, by mode, age and run.

Owns no store: it is given the cache, and a snapshot where one is read. Answers of models never expire; searches and
pages do, and a failed one counts only for the run in which it failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from .cache import Cache, Mode
from .entries import StoredAnswer, StoredFailure, later_of
from .snapshot import Snapshot

DAY_S = 86_400.0


class Ages(Struct, frozen=True, kw_only=True):
    """How old stored entries may be: `max_age_s` in seconds, the others in seconds since 1970. Entries since
    `run_started` are the run's own and never too old; failures before `retry_started` are asked again."""

    max_age_s: float = DAY_S
    run_started: float = 0.0
    retry_started: float = 0.0


class CachePolicy:
    """The rules of one mode for reading stored entries. `clock` returns seconds since 1970, as in entries."""

    def __init__(
        self,
        cache: Cache,
        mode: Mode,
        ages: Ages | None = None,
        *,
        snapshot: Snapshot | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cache = cache
        self.snapshot = snapshot
        self._ages = ages if ages is not None else Ages()
        self._clock = clock
        self._is_repeating = mode in ("replay", "strict")
        self._is_aging = mode == "record"
        self._sources: tuple[Cache | Snapshot, ...] = (cache,)
        self.place = "the cache"
        # A model's answer, whatever its age. Every call uses this look-up, so it is the plain function.
        self.answer: Callable[[bytes], StoredAnswer | None] = cache.get
        if snapshot is not None:
            self._sources = (snapshot,) if mode == "strict" else (snapshot, cache)
            self.place = "the snapshot"
            self.answer = self._first

    def _first(self, key: bytes) -> StoredAnswer | None:
        for source in self._sources:
            entry = source.get(key)
            if entry is not None:
                return entry
        return None

    def retrieval(self, key: bytes) -> StoredAnswer | StoredFailure | None:
        """Returns the later of a search's or page's answer and final failure that may be used; None if neither may."""
        for source in self._sources:
            entry, failed = source.get(key), source.failure(key)
            if entry is not None and not self._is_young(entry.received_at):
                entry = None
            if failed is not None and not self._is_ours(failed.received_at):
                failed = None
            if (later := later_of(entry, failed)) is not None:
                return later
        return None

    def derived(self, key: bytes) -> bytes | None:
        """Returns the value kept under a `derived_key` in the snapshot or the cache; None if there is none."""
        value = None if self.snapshot is None else self.snapshot.derived(key)
        return value if value is not None else self.cache.derived(key)

    def keep(self, key: bytes, value: bytes) -> None:
        self.cache.keep(key, value)

    def _is_young(self, received_at: float) -> bool:
        ages = self._ages
        if not self._is_aging or received_at >= ages.run_started:
            return True
        return self._clock() - received_at <= ages.max_age_s

    def _is_ours(self, received_at: float) -> bool:
        return self._is_repeating or received_at >= max(self._ages.run_started, self._ages.retry_started)
