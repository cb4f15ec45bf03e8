"""Drops old entries from a cache, and every body that nothing names any more.

All in one transaction, since a body that another process names meanwhile must stay. Commits nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import lmdb

from .entries import KEPT_AT, KEY_BYTES, StoredAnswer, StoredFailure, entry_of, failed_of
from .lmdb_store import ANSWERS, BODIES, DERIVED, FAILURES, PRIVATE, is_sealed


class PruneCounts(NamedTuple):
    """How many entries of each kind were dropped."""

    answers: int
    failures: int
    bodies: int
    texts: int


def drop(transaction: lmdb.Transaction, before: float, databases: Mapping[bytes, Any]) -> PruneCounts:
    """Drops all entries older than `before` (seconds since 1970) and bodies that no entry names. Returns how many."""
    named: set[bytes] = set()
    return PruneCounts(
        sum(_drop_old(transaction, db, entry_of, before, named) for db in (databases[ANSWERS], databases[PRIVATE])),
        _drop_old(transaction, databases[FAILURES], failed_of, before, named),
        _drop(transaction, databases[BODIES], lambda key, cursor: key not in named),
        _drop(transaction, databases[DERIVED], lambda key, cursor: not _is_kept_since(before, key, cursor.value())),
    )


def _drop_old(
    transaction: lmdb.Transaction,
    db: Any,
    read: Callable[[bytes | memoryview], StoredAnswer | StoredFailure | None],
    before: float,
    named: set[bytes],
) -> int:
    """Drops entries older than `before` and unreadable ones, adds the bodies that the rest names to `named`, and
    returns how many were dropped."""

    def is_doomed(key: bytes, cursor: lmdb.Cursor) -> bool:
        stored = cursor.value()
        entry = read(memoryview(stored)[:-4]) if is_sealed(key, stored) else None
        if entry is None or entry.received_at < before:
            return True
        if entry.body_hash:
            named.add(key[:-KEY_BYTES] + entry.body_hash)  # the key may begin with its run's scope
        return False

    return _drop(transaction, db, is_doomed)


def _drop(transaction: lmdb.Transaction, db: Any, is_doomed: Callable[[bytes, lmdb.Cursor], bool]) -> int:
    with transaction.cursor(db=db) as cursor:
        keys = (bytes(key) for key in cursor.iternext(keys=True, values=False))
        doomed = [key for key in keys if is_doomed(key, cursor)]
    return sum(transaction.delete(key, db=db) for key in doomed)


def _is_kept_since(before: float, key: bytes, stored: bytes | memoryview) -> bool:
    return is_sealed(key, stored) and float(KEPT_AT.unpack_from(stored)[0]) >= before
