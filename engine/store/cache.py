"""Answers that were paid for, stored by cache key in one LMDB environment per folder.

Several processes may read and write; nothing is ever unpickled; a damaged entry reads as a miss, damaged pages end the
work with a local fault. Owns entries and their commits, not whether to use them: cache_policy. Commits are made in
groups on the loop, since a thread would have to win the interpreter's lock for every entry; large ones in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import lmdb
from msgspec import Struct, structs

from ..call import Failure
from ..endpoint import Request, Response
from ..fault import LocalFault
from ..sink import SinkLine
from ..spare_room import SpareRoom
from .commit import CommitGroup, Done, StoreRow
from .entries import BODY_APART, KEPT_AT, StoredFailure, encode, entry_of, failed_of, with_body
from .entries import StoredAnswer as StoredAnswer
from .entries import derived_key as derived_key
from .entries import prompt_mark as prompt_mark
from .lmdb_store import ANSWERS, BODIES, DERIVED, FAILURES, NAMES, PRIVATE, StoreAccess, is_sealed, sealed
from .pruning import PruneCounts, drop

Mode = Literal["live", "record", "replay", "strict"]
MODES: tuple[Mode, ...] = ("live", "record", "replay", "strict")

# An answer waits for others so that one commit serves many, until there are enough: commits may take an eighth of the
# time of a busy process. In one with time to spare, the next commit comes as soon as the process has been idle for as
# long as a commit takes without its entries, since a call keeps its place in flight until its answer is stored. With
# the entries, a larger group would make the wait longer, and that the group larger. Measured: 75 µs an entry in groups
# of 8, 27 in groups of 64, of which an entry's own are 20; 256 take two thirds of what 128 take.
_GROUP_ENOUGH = 256
_GROUP_BYTES = 1 << 20
# A larger commit is made in a thread, since the loop would stand still meanwhile. Measured: 6 ms for half a megabyte,
# 50 for five.
_OFF_LOOP_BYTES = 1 << 18
_GROUP_WAIT_S = 0.002
_GROUP_WAIT_MAX_S = 0.05
_COMMIT_SHARE = 1 / 8
_ENTRY_S = 20e-6
# The idle share is that of about so many seconds, since the time between two commits is often all idle or all busy.
_IDLE_OF_S = 1.0


class CacheStatistics(Struct, frozen=True):
    path: str
    entries: int
    private_entries: int
    bytes: int
    failures: int = 0
    bodies: int = 0
    texts: int = 0


class Cache:
    """An open cache. `scope` names a run in live mode: its entries are its own and are dropped when it ends.
    `spares_loop`: small groups too are committed in a thread, since the disk may delay any commit; for work other
    than many small answers. `spare_bytes` of the disk are held for what is received when the rest of it is full."""

    def __init__(
        self,
        folder: Path,
        *,
        read_only: bool = False,
        scope: bytes = b"",
        spares_loop: bool = False,
        spare_bytes: int = 0,
    ) -> None:
        self.folder = folder
        self.scope = scope
        self.spares_loop = spares_loop
        self._store = StoreAccess(folder, read_only=read_only)
        self._databases = {name: self._store.database(name) for name in NAMES}
        self._spare: SpareRoom | None = None
        if spare_bytes:
            with suppress(LocalFault):  # a disk without this room may still take what comes
                self._spare = SpareRoom(folder, spare_bytes)
        self._db = self._databases[PRIVATE if scope else ANSWERS]
        self._waiting: list[StoreRow] = []
        self._waiting_bodies: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        self._kept: dict[bytes, bytes] = {}
        self._commit_wait_s = _GROUP_WAIT_S
        # When the latest commit ended, by `perf_counter`, and the processor time until then.
        self._committed_at, self._cpu_s = time.perf_counter(), time.process_time()
        # The share of the time between commits in which the process was idle.
        self._idle = 0.0
        self._timer: asyncio.Handle | None = None
        self._writer: ThreadPoolExecutor | None = None
        # A commit in the writer's thread, and its end: its fault, or None.
        self._writing: tuple[CommitGroup, Future[LocalFault | None]] | None = None

    @property
    def is_faulty(self) -> bool:
        return self._store.is_faulty

    # Answers and failures

    def get(self, key: bytes) -> StoredAnswer | None:
        """Returns the answer stored under a cache key; None if it is missing, damaged or not committed yet."""
        key = self.scope + key
        try:
            with self._store.begin(db=self._db) as transaction:
                stored = transaction.get(key)
                if stored is None or not is_sealed(key, stored):
                    return None
                entry = entry_of(memoryview(stored)[:-4])
                if entry is None or not entry.body_hash:
                    return entry
                return with_body(entry, partial(self._body, transaction))
        except lmdb.Error as error:
            self._store.check_damage(error)
            return None

    def failure(self, key: bytes) -> StoredFailure | None:
        """Returns the final failure stored for a search or a page; None if there is none."""
        stored = self.value(FAILURES, self.scope + key)
        failed = None if stored is None else failed_of(stored)
        return with_body(failed, lambda body_hash: self.value(BODIES, self.scope + body_hash))

    def put(
        self,
        key: bytes,
        request: Request,
        sample: int,
        response: Response,
        done: Done,
        *,
        is_last: bool = True,
        url: str = "",
        line: SinkLine | None = None,
    ) -> None:
        """Stores an answer. `done` is called when the answer is committed and its `line` written, or with the error: a
        LocalFault, or one of the line's sink. `is_last`: no other answer is on its way that could share the commit."""
        size, body_hash = len(response.body), b""
        if size >= BODY_APART:
            response, body_hash = self._apart(response)
        mark = prompt_mark(request)
        entry = StoredAnswer(request.identity, request.params, mark, sample, time.time(), response, body_hash, url)
        self._put(self._db, key, encode(entry), size, done, is_last=is_last, line=line)

    def put_failure(
        self,
        key: bytes,
        request: Request,
        failure: Failure,
        response: Response | None,
        done: Done,
        *,
        url: str = "",
        line: SinkLine | None = None,
    ) -> None:
        """Stores a final failure, with the response that showed it (None: there was none). `done` as in `put`."""
        size, body_hash = 0 if response is None else len(response.body), b""
        if response is not None and size >= BODY_APART:
            response, body_hash = self._apart(response)
        failed = StoredFailure(request.identity, time.time(), failure, response, body_hash, url)
        self._put(self._databases[FAILURES], key, encode(failed), size, done, is_last=True, line=line)

    def put_entry(self, key: bytes, entry: StoredAnswer | StoredFailure, done: Done) -> None:
        """Stores an answer or failure of another cache as it is, with the time at which it was received. `done` is
        called as in `put`."""
        response, size = entry.response, 0
        if response is not None and (size := len(response.body)) >= BODY_APART:
            response, body_hash = self._apart(response)
            entry = structs.replace(entry, response=response, body_hash=body_hash)
        db = self._databases[FAILURES] if isinstance(entry, StoredFailure) else self._db
        self._put(db, key, encode(entry), size, done, is_last=False)

    def _put(
        self, db: Any, key: bytes, value: bytes, size: int, done: Done, *, is_last: bool, line: SinkLine | None = None
    ) -> None:
        key = self.scope + key
        loop = asyncio.get_running_loop()
        self._waiting.append(StoreRow(db, key, sealed(key, value), done, line))
        self._waiting_bytes += size
        if self._timer is None:
            self._timer = loop.call_later(self._commit_wait_s, self._commit)
        if is_last or len(self._waiting) == _GROUP_ENOUGH or self._waiting_bytes >= _GROUP_BYTES:
            self._timer.cancel()
            self._timer = loop.call_soon(self._commit)

    def _apart(self, response: Response) -> tuple[Response, bytes]:
        """Returns the response without its body, and the SHA-256 of the body, which is stored by the same commit."""
        body_hash = hashlib.sha256(response.body).digest()
        self._waiting_bodies[self.scope + body_hash] = response.body
        return structs.replace(response, body=b""), body_hash

    def _body(self, transaction: lmdb.Transaction, body_hash: bytes) -> bytes | None:
        key = self.scope + body_hash
        stored = transaction.get(key, db=self._databases[BODIES])
        return bytes(stored[:-4]) if stored is not None and is_sealed(key, stored) else None

    # What was made of bodies

    def derived(self, key: bytes) -> bytes | None:
        """Returns the value kept under a `derived_key`; None if there is none."""
        waiting = self._kept.get(key)
        if waiting is not None:
            return waiting
        value = self.value(DERIVED, key)
        return None if value is None else value[KEPT_AT.size :]

    def derived_from(self, source: bytes) -> list[tuple[bytes, bytes]]:
        """Returns the keys and values of all that was derived from the body with this SHA-256."""
        rows = []
        with self._store.transaction(self._databases[DERIVED]) as transaction, transaction.cursor() as cursor:
            is_there = cursor.set_range(source)
            while is_there and (key := bytes(cursor.key())).startswith(source):
                value = bytes(cursor.value())
                if is_sealed(key, value):
                    rows.append((key, value[KEPT_AT.size : -4]))
                is_there = cursor.next()
        return rows

    def keep(self, key: bytes, value: bytes) -> None:
        """Keeps a value that can be derived again from stored bodies; it is written with the next commit."""
        self._kept[key] = value
        self._waiting_bytes += len(value)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._commit_wait_s, self._commit)

    # The whole of it

    def entries(self) -> Iterator[tuple[bytes, StoredAnswer]]:
        """Yields every readable shared answer, with its key and body, in one transaction: use it without an await."""
        with self._store.transaction(self._databases[ANSWERS]) as transaction:
            for key, stored in cast("Iterator[tuple[bytes, bytes]]", transaction.cursor()):
                entry = entry_of(memoryview(stored)[:-4]) if is_sealed(key, stored) else None
                if (entry := with_body(entry, partial(self._body, transaction))) is not None:
                    yield bytes(key), entry

    def value(self, db: bytes, key: bytes) -> bytes | None:
        """Returns one entry as it is stored, without its checksum; None if it is missing or damaged."""
        try:
            with self._store.begin(db=self._databases[db]) as transaction:
                stored = transaction.get(key)
        except lmdb.Error as error:
            self._store.check_damage(error)
            return None
        return stored[:-4] if stored is not None and is_sealed(key, stored) else None

    def add(self, pieces: Iterable[tuple[bytes, bytes, bytes]]) -> int:
        """Stores the entries that are not there yet, in one transaction, and returns how many those were. Each has its
        database, its key, and its value without a checksum."""
        added = 0
        with self._store.transaction(write=True) as transaction:
            for db, key, value in pieces:
                there = transaction.get(key, db=self._databases[db])
                if there is None or not is_sealed(key, there):
                    stamped = KEPT_AT.pack(time.time()) + value if db == DERIVED else value
                    added += transaction.put(key, sealed(key, stamped), db=self._databases[db])
        return added

    def prune(self, *, older_than_s: float | None = None, now: float | None = None) -> PruneCounts:
        """Drops entries older than `older_than_s` seconds (None: all), those of live runs included, and every body that
        nothing names any more. Returns how many."""
        before = float("inf") if older_than_s is None else (time.time() if now is None else now) - older_than_s
        with self._store.transaction(write=True) as transaction:
            return drop(transaction, before, self._databases)

    def drop_scope(self) -> None:
        """Drops the entries of a live run that has ended; it stored them only to be resumable."""
        if not self.scope:
            return
        with self._store.transaction(write=True) as transaction:
            for name in (PRIVATE, FAILURES, BODIES):
                with transaction.cursor(db=self._databases[name]) as cursor:
                    is_there = cursor.set_range(self.scope)
                    while is_there and bytes(cursor.key()).startswith(self.scope):
                        is_there = cursor.delete()

    def statistics(self) -> CacheStatistics:
        with self._store.transaction() as transaction:
            shared, private, texts, bodies, failures = (
                int(transaction.stat(db)["entries"]) for db in self._databases.values()
            )
        size = (self.folder / "data.mdb").stat().st_size
        return CacheStatistics(str(self.folder), shared, private, size, failures, bodies, texts)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._end_writing()
        self._commit(is_closing=True)
        if self._writer is not None:
            self._writer.shutdown()
        if self._spare is not None:
            self._spare.give_back()
        self._store.close()

    def _commit(self, *, is_closing: bool = False) -> None:
        # Between the swap and the commit nothing awaits: an answer is either waiting, being written, or on disk.
        self._timer = None
        if self._writing is not None or not (self._waiting or self._kept):
            return  # the commit under way commits what waits when it ends
        now, used_s = time.perf_counter(), time.process_time() - self._cpu_s
        passed_s = now - self._committed_at
        self._idle += min(1.0, passed_s / _IDLE_OF_S) * (1 - used_s / passed_s - self._idle)
        group = CommitGroup(self._waiting, self._waiting_bodies, dict(self._kept), now)
        self._waiting, self._waiting_bodies = [], {}
        size, self._waiting_bytes = self._waiting_bytes, 0
        if is_closing or (size < _OFF_LOOP_BYTES and not self.spares_loop):
            self._committed(group, self._write(group))
            return
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "cache")
        try:
            end = self._writer.submit(self._write, group)
        except RuntimeError:  # the program is ending, and no thread takes anything more
            self._committed(group, self._write(group))
            return
        self._writing = group, end
        loop = asyncio.get_running_loop()
        # The callback holds no group: a reference cycle would keep the bodies until the garbage collector runs.
        end.add_done_callback(lambda _: _tell(loop, self._written))

    def _written(self) -> None:
        if self._writing is not None and self._writing[1].done():
            self._end_writing()
            self._commit()

    def _end_writing(self) -> None:
        if self._writing is not None:
            (group, end), self._writing = self._writing, None
            self._committed(group, end.result())

    def _write(self, group: CommitGroup) -> LocalFault | None:
        fault = self._try_to_write(group)
        if fault is not None and self._spare is not None and self._spare.give_back():
            # The answers are saved; the fault is returned all the same, so that nothing more is sent.
            self._try_to_write(group)
        return fault

    def _try_to_write(self, group: CommitGroup) -> LocalFault | None:
        try:
            with self._store.transaction(write=True) as transaction:
                put = transaction.put
                for row in group.rows:
                    put(row.key, row.stored, db=row.db)
                for key, body in group.bodies.items():
                    there = transaction.get(key, db=self._databases[BODIES])
                    if there is None or not is_sealed(key, there):
                        put(key, sealed(key, body), db=self._databases[BODIES])
                for key, value in group.kept.items():
                    put(key, sealed(key, KEPT_AT.pack(time.time()) + value), db=self._databases[DERIVED])
        except LocalFault as fault:
            return fault
        return None

    def _committed(self, group: CommitGroup, fault: LocalFault | None) -> None:
        self._committed_at, self._cpu_s = time.perf_counter(), time.process_time()
        took_s = self._committed_at - group.began
        wait_s = took_s / _COMMIT_SHARE
        if self._idle > 0:
            wait_s = min(wait_s, (took_s - len(group.rows) * _ENTRY_S) / self._idle)
        self._commit_wait_s = min(_GROUP_WAIT_MAX_S, max(_GROUP_WAIT_S, wait_s))
        for key, value in group.kept.items():
            if self._kept.get(key) is value:
                del self._kept[key]
        group.end(fault)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # a loop that has ended waits for nothing
        loop.call_soon_threadsafe(what)
