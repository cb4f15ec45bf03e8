"""Answers that were paid for, kept by the key of their call in one LMDB environment a folder.

Readers and writers of several processes are safe; nothing is ever unpickled; damage reads as a miss.
Owns entries and their commits, not the decision whether to use them. Writes are committed in groups on
the loop: a writer thread would have to win the interpreter's lock once for every entry.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import lmdb
import msgspec
from msgspec import Struct

from .endpoint import Request, Response
from .fault import LocalFault

Mode = Literal["live", "record", "replay", "strict"]
MODES: tuple[Mode, ...] = ("live", "record", "replay", "strict")

_MAP_SIZES = (1 << 40, 1 << 36, 1 << 32, 1 << 30)
_GROUP_WAIT_S = 0.002
_READERS = 1022
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "sshfs", "glusterfs", "lustre", "ceph", "afs", "9p")


class Entry(Struct, frozen=True, array_like=True):
    """One stored answer, with what is needed to explain a miss later. `crc` is over the body."""

    identity: str
    params: bytes
    prompt_mark: int
    sample: int
    received_at: float
    response: Response
    crc: int


_encode_entry = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


def prompt_mark(request: Request) -> int:
    """Tells prompts apart well enough to explain a miss; the key alone decides."""
    return zlib.crc32(request.prompt) << 32 | (len(request.prompt) & 0xFFFFFFFF)


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
        self._environment = _open_shared(folder, read_only=read_only)
        self._shared = self._environment.open_db(b"answers", create=not read_only)
        self._private = self._environment.open_db(b"private", create=not read_only)
        self._db = self._private if scope else self._shared
        self._waiting: list[tuple[bytes, bytes, asyncio.Future[None]]] = []
        self._under_way: dict[bytes, bytes] = {}
        self._commit_wait_s = _GROUP_WAIT_S
        self._timer: asyncio.TimerHandle | None = None
        self.is_faulty = False

    def get(self, key: bytes) -> Entry | None:
        key = self.scope + key
        stored = self._under_way.get(key)
        if stored is None:
            with self._environment.begin(db=self._db) as transaction:
                stored = transaction.get(key)
        if stored is None:
            return None
        try:
            entry = _decode_entry(stored)
        except msgspec.DecodeError:
            return None
        return entry if zlib.crc32(entry.response.body) == entry.crc else None

    def put(self, key: bytes, request: Request, sample: int, response: Response) -> asyncio.Future[None]:
        """Store an answer; the future is done when it is committed, or fails with a local fault."""
        entry = Entry(
            request.identity,
            request.params,
            prompt_mark(request),
            sample,
            time.time(),
            response,
            zlib.crc32(response.body),
        )
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        stored = _encode_entry(entry)
        self._waiting.append((self.scope + key, stored, done))
        self._under_way[self.scope + key] = stored
        if self._timer is None:
            self._timer = loop.call_later(self._commit_wait_s, self._commit)
        return done

    def remove(self, key: bytes) -> None:
        with self._environment.begin(write=True, db=self._db) as transaction:
            transaction.delete(self.scope + key)

    def entries(self) -> Iterator[tuple[bytes, Entry]]:
        """Every readable shared entry. One transaction: take it in one go, never across an await."""
        with self._environment.begin(db=self._shared) as transaction:
            for key, stored in transaction.cursor():
                try:
                    yield bytes(key), _decode_entry(stored)
                except msgspec.DecodeError:
                    continue

    def prune(self, *, older_than_s: float | None = None, now: float | None = None) -> int:
        """Drop shared entries older than so many seconds (None: all) and leftovers of live runs."""
        now = time.time() if now is None else now
        doomed = [
            key for key, entry in self.entries() if older_than_s is None or now - entry.received_at > older_than_s
        ]
        with self._environment.begin(write=True) as transaction:
            for key in doomed:
                transaction.delete(key, db=self._shared)
            doomed_private = transaction.stat(self._private)["entries"]
            transaction.drop(self._private, delete=False)
        return len(doomed) + int(doomed_private)

    def drop_scope(self) -> None:
        """The live run has ended: what it kept to be able to resume goes."""
        if not self.scope:
            return
        with self._environment.begin(write=True, db=self._private) as transaction, transaction.cursor() as cursor:
            found = cursor.set_range(self.scope)
            while found and cursor.key().startswith(self.scope):
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
        _close_shared(self.folder)

    def _commit(self) -> None:
        # Between the swap and the commit nothing awaits: an answer is either waiting or on disk.
        self._timer = None
        group, self._waiting = self._waiting, []
        if not group:
            return
        began = time.perf_counter()
        fault: LocalFault | None = None
        try:
            with self._environment.begin(write=True, db=self._db) as transaction:
                put = transaction.put
                for key, stored, _ in group:
                    put(key, stored)
        except (lmdb.Error, OSError) as error:
            self.is_faulty = True
            fault = LocalFault(f"cache {self.folder} can't be written ({error}): free disk space, then resume")
        self._under_way.clear()
        took = time.perf_counter() - began
        # A slow disk gets larger groups: commits never take more than half of the loop's time.
        self._commit_wait_s = max(_GROUP_WAIT_S, took)
        for _, _, done in group:
            if not done.done():
                done.set_exception(fault) if fault is not None else done.set_result(None)


# LMDB forbids opening a folder twice in one process, so who comes second shares what the first opened.
_open: dict[Path, tuple[lmdb.Environment, int]] = {}


def _open_shared(folder: Path, *, read_only: bool) -> lmdb.Environment:
    folder = folder.absolute()
    if folder in _open:
        environment, count = _open[folder]
        _open[folder] = (environment, count + 1)
        return environment
    environment = _open_environment(folder, read_only=read_only)
    _open[folder] = (environment, 1)
    return environment


def _close_shared(folder: Path) -> None:
    folder = folder.absolute()
    environment, count = _open.pop(folder)
    if count > 1:
        _open[folder] = (environment, count - 1)
    else:
        environment.close()


def _open_environment(folder: Path, *, read_only: bool) -> lmdb.Environment:
    problem: Exception | None = None
    try:
        if not read_only:
            folder.mkdir(parents=True, exist_ok=True)
        elif not (folder / "data.mdb").exists():
            raise LocalFault(f"cache {folder} does not exist: nothing has been stored there")
        _refuse_network(folder)
        for map_size in _MAP_SIZES:
            try:
                environment = lmdb.open(
                    str(folder),
                    map_size=map_size,
                    max_dbs=4,
                    max_readers=_READERS,
                    writemap=False,
                    metasync=False,
                    readonly=read_only,
                )
            except lmdb.MemoryError as error:
                problem = error
                continue
            environment.reader_check()
            return environment
    except (lmdb.Error, OSError) as error:
        problem = error
    raise LocalFault(
        f"cache {folder} can't be opened ({problem}): check the folder and its permissions, or use another with --cache"
    )


def _refuse_network(folder: Path) -> None:
    """LMDB's locks don't hold across machines, so a network file system would corrupt the store."""
    try:
        mounts = Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return
    best, kind = "", ""
    target = os.path.realpath(folder) + "/"
    for line in mounts:
        fields = line.split()
        if len(fields) > 2:
            point = fields[1].replace("\\040", " ").rstrip("/") + "/"
            if target.startswith(point) and len(point) >= len(best):
                best, kind = point, fields[2]
    if any(name in kind for name in _NETWORK_FILE_SYSTEMS):
        raise LocalFault(f"cache {folder} lies on a network file system ({kind}): use a local folder with --cache")
