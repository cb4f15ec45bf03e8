"""The file of a cache: one LMDB environment per folder, opened once per process and shared by all its users.

Refuses what can't be trusted: another program's file, a damaged one (trust), a network file system. Adds a checksum to
each entry, and says what an error of LMDB means. Knows nothing of answers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from ..fault import LocalFault
from ..mapped_file import open_to_map
from .page_proof import DamagedPages, check_pages, missing_bytes
from .trust import TrustedFile

_MAP_SIZES = (1 << 40, 1 << 36, 1 << 32, 1 << 30)
_DATA = "data.mdb"
_READERS = 1022
_LOCKS_SIZE = 64 * (_READERS + 2)
NAMES = (ANSWERS, PRIVATE, DERIVED, BODIES, FAILURES) = (b"answers", b"private", b"derived", b"bodies", b"failures")
_DAMAGES = (
    lmdb.BadTxnError,
    lmdb.CorruptedError,
    lmdb.CursorFullError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.PageFullError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.ProblemError,
    lmdb.VersionMismatchError,
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# With less than this the next commit may not fit.
_ROOM_LEAST = 1 << 20
# The CRC-32 of any bytes that are followed by their own CRC-32, in little-endian order.
_SEALED = 0x2144DF1C
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "sshfs", "glusterfs", "beegfs", "gpfs", "lustre", "ceph", "afs", "9p")


def sealed(key: bytes, stored: bytes) -> bytes:
    """Returns a value with a CRC-32 over key and value, so that a damaged page never gives a call another's answer."""
    return stored + zlib.crc32(stored, zlib.crc32(key)).to_bytes(4, "little")


def is_sealed(key: bytes, stored: bytes | memoryview) -> bool:
    return zlib.crc32(stored, zlib.crc32(key)) == _SEALED


class _OpenStore(NamedTuple):
    environment: lmdb.Environment
    file: TrustedFile
    users: int = 0


# LMDB forbids opening a folder twice in one process, so later users share what the first one opened.
_open: dict[Path, _OpenStore] = {}


class StoreAccess:
    """One user's open store: transactions, and what their errors mean. With damaged pages all work ends, since all that
    they hold would be paid for again. `is_faulty`: it was found damaged, or could not be written."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder = folder
        self.is_faulty = False
        self._place = folder.resolve()
        opened = _open.get(self._place) or _open_file(self._place, read_only=read_only)
        _open[self._place] = opened._replace(users=opened.users + 1)
        self._environment = opened.environment
        self.begin = self._environment.begin

    def database(self, name: bytes) -> Any:
        return self._environment.open_db(name, create=False)

    def check_damage(self, error: lmdb.Error) -> None:
        """Raises LocalFault if a look-up found damaged pages; any other error counts as a miss."""
        if is_damage(error):
            self.is_faulty = True
            raise store_fault(self.folder, error) from error

    @contextmanager
    def transaction(self, db: Any = None, *, write: bool = False) -> Iterator[lmdb.Transaction]:
        """Raises LocalFault for any error in the block."""
        try:
            with self.begin(db=db, write=write) as transaction:
                yield transaction
        except (lmdb.Error, OSError) as error:
            self.is_faulty = True
            raise store_fault(self.folder, error) from error

    def close(self) -> None:
        opened = _open.pop(self._place)
        if opened.users > 1:
            _open[self._place] = opened._replace(users=opened.users - 1)
        else:
            opened.environment.close()
            opened.file.close()


def is_damage(error: Exception) -> bool:
    """Whether an error of LMDB means that the file is not as LMDB left it."""
    return isinstance(error, _DAMAGES)


def store_fault(folder: Path, error: Exception) -> LocalFault:
    """Returns the fault for an error that occurred while a cache is in use: what it means, and what to do."""
    if is_damage(error):
        return damaged_store(folder, str(error), "used")
    # LMDB reports most errors of the system by their words alone.
    is_told = any(os.strerror(number) in str(error) for number in _FULL)
    if isinstance(error, lmdb.MapFullError | lmdb.DiskError) or is_told or is_full(folder):
        return LocalFault(f"cache {folder} can't be written ({reason_of(error, folder)}): free disk space, then resume")
    return LocalFault(f"cache {folder} can't be used ({error}): check its disk and its permissions, then resume")


def damaged_store(folder: Path, why: str, what: str = "opened") -> LocalFault:
    return LocalFault(
        f"cache {folder} can't be {what} ({folder / _DATA} is damaged: {why}): move that file away and start again "
        f"(runs keep their answers in their own folders), or use another with --cache"
    )


def reason_of(error: Exception, folder: Path) -> str:
    """Returns what an error of LMDB in a folder says; of a full disk by its name."""
    return os.strerror(errno.ENOSPC) if is_full(folder) else str(error)


def is_full(folder: Path) -> bool:
    """Whether the disk is full. LMDB reports a write that a full disk cut short as an input/output error."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM_LEAST


def _open_file(folder: Path, *, read_only: bool) -> _OpenStore:
    path = folder / _DATA
    try:
        _check_local_disk(folder)
        if not read_only:
            folder.mkdir(parents=True, exist_ok=True)
            _create(folder)
            os.close(open_to_map(folder / "lock.mdb", _LOCKS_SIZE, 0o644))  # LMDB itself maps it with holes
        elif not path.exists():
            raise LocalFault(f"cache {folder} does not exist: nothing has been stored there")
        file = TrustedFile(path, NAMES, read_only=read_only)
    except DamagedPages as error:
        raise damaged_store(folder, str(error)) from error
    except OSError as error:
        raise _unopened(folder, error) from error
    try:
        return _OpenStore(_open_environment(folder, read_only=read_only), file)
    except BaseException:
        file.close()
        raise


def _create(folder: Path) -> None:
    """Makes an empty file if there is none. It appears whole: LMDB takes the half of one, as a kill would leave it, for
    damage."""
    draft, path = folder / "new", folder / _DATA
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # of several processes one makes it
        if not path.exists():
            shutil.rmtree(draft, ignore_errors=True)
            lmdb.open(str(draft), lock=False).close()
            with (draft / _DATA).open("rb") as file:
                os.fsync(file.fileno())
            (draft / _DATA).rename(path)
            draft.rmdir()
    except lmdb.Error as error:
        raise _unopened(folder, error) from error
    finally:
        os.close(held)


def _open_environment(folder: Path, *, read_only: bool) -> lmdb.Environment:
    problem: Exception | None = None
    try:
        for map_size in _MAP_SIZES:
            try:
                environment = lmdb.open(
                    str(folder),
                    map_size=map_size,
                    max_dbs=8,
                    max_readers=_READERS,
                    writemap=False,
                    metasync=False,
                    readonly=read_only,
                )
            except lmdb.MemoryError as error:
                problem = error
                continue
            try:
                if not read_only:
                    environment.reader_check()
                    _mend_end(folder / _DATA, environment)
                elif missing_bytes(folder / _DATA):
                    raise lmdb.NotFoundError("its end is missing")
                for name in NAMES:
                    environment.open_db(name, create=not read_only)
            except BaseException as error:
                environment.close()
                if read_only and isinstance(error, lmdb.NotFoundError):
                    # A kill while the store was made leaves it without some of its databases: a writer adds them.
                    _open_environment(folder, read_only=False).close()
                    return _open_environment(folder, read_only=True)
                raise
            return environment
    except DamagedPages as error:
        raise damaged_store(folder, str(error)) from error
    except (lmdb.Error, OSError) as error:
        if is_damage(error):
            raise damaged_store(folder, str(error)) from error
        problem = error
    raise _unopened(folder, problem) from problem


def _unopened(folder: Path, problem: Exception | None) -> LocalFault:
    return LocalFault(
        f"cache {folder} can't be opened ({problem}): check the folder and its permissions, or use another with --cache"
    )


def _mend_end(path: Path, environment: lmdb.Environment) -> None:
    """Fills up a file in which only free pages at the end are missing, which LMDB itself leaves out: reading a page
    beyond the file's end would kill the process."""
    with environment.begin(write=True):  # nobody else may write meanwhile
        missing = missing_bytes(path)
        if missing:
            check_pages(path, NAMES)
            os.truncate(path, path.stat().st_size + missing)


def _check_local_disk(folder: Path) -> None:
    """Raises LocalFault for a network file system, where LMDB's locks don't hold and the store would be corrupted."""
    try:
        mounts = Path("/proc/mounts").read_text("utf-8")
    except OSError:
        return
    kind = file_system_of(os.path.realpath(folder), mounts)
    if any(name in kind for name in _NETWORK_FILE_SYSTEMS):
        raise LocalFault(f"cache {folder} lies on a network file system ({kind}): use a local folder with --cache")


def file_system_of(path: str, mounts: str) -> str:
    """Returns the kind of file system that holds an absolute path, by a table as in /proc/mounts; "" if none does."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) > 2:
            # The table writes space, tab, newline and backslash in octal.
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[1]).rstrip("/") + "/"
            if f"{path}/".startswith(point) and len(point) >= len(best):
                best, kind = point, fields[2]
    return kind
