"""Answers that were paid for, kept by the key of their call in one LMDB environment a folder.

Readers and writers of several processes are safe; nothing is ever unpickled; damage reads as a miss.
Owns entries and their commits, not the decision whether to use them. Writes are committed in groups on
the loop: a writer thread would have to win the interpreter's lock once for every entry.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import lmdb
import msgspec
from msgspec import Struct

from .endpoint import Request, Response
from .fault import LocalFault
from .store import ANSWERS, DERIVED, PRIVATE, close_store, is_sealed, open_store, sealed

Mode = Literal["live", "record", "replay", "strict"]
MODES: tuple[Mode, ...] = ("live", "record", "replay", "strict")

# An answer waits for others so that one commit serves many: the more of the time commits take, the longer, until
# there are enough. Measured: 75 µs an entry in groups of 8, 27 in groups of 64, less above.
_GROUP_ENOUGH = 128
_GROUP_WAIT_S = 0.002
_GROUP_WAIT_MAX_S = 0.05
_COMMIT_SHARE = 1 / 8
# What is derived begins with the time it was kept.
_TIME_BYTES = 8


class Entry(Struct, frozen=True, array_like=True):
    """One stored answer, with what is needed to explain a miss later."""

    identity: str
    params: bytes
    prompt_mark: int
    sample: int
    received_at: float
    response: Response


_encode_entry = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


def _unsealed(key: bytes, stored: bytes) -> Entry | None:
    if not is_sealed(key, stored):
        return None
    try:
        return _decode_entry(memoryview(stored)[:-4])
    except msgspec.DecodeError:
        return None  # written by another version


def prompt_mark(request: Request) -> int:
    """Tells prompts apart well enough to explain a miss; the key alone decides."""
    return zlib.crc32(request.prompt) << 32 | (len(request.prompt) & 0xFFFFFFFF)


def derived_key(source: bytes, how: bytes) -> bytes:
    """Under which something made from a body is kept: `source` is the SHA-256 of that body, so that whoever packs the
    body finds what was made of it; `how` is whatever else decides the result."""
    return source + hashlib.sha256(how).digest()


class CacheStatistics(Struct, frozen=True):
    path: str
    entries: int
    private_entries: int
    bytes: int


class Cache:
    """An open cache. `scope` names a run in live mode: its entries are its own and go when it ends."""

    def __init__(self, folder: Path, *, read_only: bool = False, scope: bytes = b"") -> None:
        self.folder = folder
        self.scope = scope
        self._environment = open_store(folder, read_only=read_only)
        self._shared = self._environment.open_db(ANSWERS, create=False)
        self._private = self._environment.open_db(PRIVATE, create=False)
        self._derived = self._environment.open_db(DERIVED, create=False)
        self._db = self._private if scope else self._shared
        self._waiting: list[tuple[bytes, bytes, asyncio.Future[None]]] = []
        self._kept: dict[bytes, bytes] = {}
        self._under_way: dict[bytes, asyncio.Future[None]] = {}
        self._commit_wait_s = _GROUP_WAIT_S
        self._timer: asyncio.Handle | None = None
        self.is_faulty = False

    def get(self, key: bytes) -> Entry | None:
        """What is committed: an answer on its way to the disk is not one yet."""
        key = self.scope + key
        try:
            with self._environment.begin(db=self._db) as transaction:
                stored = transaction.get(key)
        except lmdb.Error:
            return None  # a damaged page: the answer is asked for again
        return None if stored is None else _unsealed(key, stored)

    def put(
        self, key: bytes, request: Request, sample: int, response: Response, *, is_last: bool = True
    ) -> asyncio.Future[None]:
        """Store an answer; the future is done when it is committed, or fails with a local fault. `is_last`: no other is
        on its way that this one's commit could wait for."""
        key = self.scope + key
        entry = Entry(request.identity, request.params, prompt_mark(request), sample, time.time(), response)
        stored = sealed(key, _encode_entry(entry))
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._waiting.append((key, stored, done))
        self._under_way[key] = done
        if self._timer is None:
            self._timer = loop.call_later(self._commit_wait_s, self._commit)
        if is_last or len(self._waiting) == _GROUP_ENOUGH:
            self._timer.cancel()
            self._timer = loop.call_soon(self._commit)
        return done

    def under_way(self, key: bytes) -> asyncio.Future[None] | None:
        """Done when the answer that waits for its commit has it; None where none waits."""
        return self._under_way.get(self.scope + key)

    def derived(self, key: bytes) -> bytes | None:
        """What was kept under a `derived_key`."""
        waiting = self._kept.get(key)
        if waiting is not None:
            return waiting
        try:
            with self._environment.begin(db=self._derived) as transaction:
                stored = transaction.get(key)
        except lmdb.Error:
            return None
        return stored[_TIME_BYTES:-4] if stored is not None and is_sealed(key, stored) else None

    def keep(self, key: bytes, value: bytes) -> None:
        """Keep what can be made again from what is stored; it goes to the disk with the answers that come next."""
        self._kept[key] = value
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._commit_wait_s, self._commit)

    def entries(self) -> Iterator[tuple[bytes, Entry]]:
        """Every readable shared entry. One transaction: take it in one go, never across an await."""
        with self._environment.begin(db=self._shared) as transaction:
            for key, stored in transaction.cursor():
                entry = _unsealed(key, stored)
                if entry is not None:
                    yield bytes(key), entry

    def prune(self, *, older_than_s: float | None = None, now: float | None = None) -> int:
        """Drop what is older than so many seconds (None: everything), what live runs kept included. How many."""
        before = float("inf") if older_than_s is None else (time.time() if now is None else now) - older_than_s
        doomed = []
        for db in (self._shared, self._private):
            with self._environment.begin(db=db) as transaction:
                for key, stored in transaction.cursor():
                    entry = _unsealed(key, stored)
                    # What can't be read is of no use at any age.
                    if entry is None or entry.received_at < before:
                        doomed.append((bytes(key), db))
        with self._change() as transaction:
            for key, db in doomed:
                transaction.delete(key, db=db)
        return len(doomed)

    def drop_scope(self) -> None:
        """The live run has ended: what it kept to be able to resume goes."""
        if not self.scope:
            return
        with self._change() as transaction, transaction.cursor(db=self._private) as cursor:
            found = cursor.set_range(self.scope)
            while found and bytes(cursor.key()).startswith(self.scope):
                found = cursor.delete()

    def statistics(self) -> CacheStatistics:
        with self._environment.begin() as transaction:
            shared = transaction.stat(self._shared)["entries"]
            private = transaction.stat(self._private)["entries"]
        size = (self.folder / "data.mdb").stat().st_size
        return CacheStatistics(str(self.folder), int(shared), int(private), size)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._commit()
        close_store(self.folder)

    @contextmanager
    def _change(self) -> Iterator[lmdb.Transaction]:
        try:
            with self._environment.begin(write=True) as transaction:
                yield transaction
        except (lmdb.Error, OSError) as error:
            self.is_faulty = True
            raise LocalFault(f"cache {self.folder} can't be written ({error}): free disk space, then resume") from error

    def _commit(self) -> None:
        # Between the swap and the commit nothing awaits: an answer is either waiting or on disk.
        self._timer = None
        group, self._waiting = self._waiting, []
        kept, self._kept = self._kept, {}
        if not group and not kept:
            return
        began = time.perf_counter()
        fault: LocalFault | None = None
        try:
            with self._change() as transaction:
                put = transaction.put
                for key, stored, _ in group:
                    put(key, stored, db=self._db)
                now = struct.pack("<d", time.time())
                for key, value in kept.items():
                    put(key, sealed(key, now + value), db=self._derived)
        except LocalFault as error:
            fault = error
        self._under_way.clear()
        took = time.perf_counter() - began
        self._commit_wait_s = min(_GROUP_WAIT_MAX_S, max(_GROUP_WAIT_S, took / _COMMIT_SHARE))
        for _, _, done in group:
            if not done.done():
                done.set_exception(fault) if fault is not None else done.set_result(None)
