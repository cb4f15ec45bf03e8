"""One user's access to a store: transactions, and what their errors mean.

Owns which errors end the work: with damaged pages, all that they hold would be paid for again. Knows no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from .lmdb_store import close_store, is_damage, open_store, store_fault


class StoreAccess:
    """One user's open store. `is_faulty`: it was found damaged, or could not be written."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder = folder
        self.is_faulty = False
        self._environment = open_store(folder, read_only=read_only)
        self.begin = self._environment.begin

    def database(self, name: bytes) -> Any:
        return self._environment.open_db(name, create=False)

    def check_damage(self, error: lmdb.Error) -> None:
        """Raises LocalFault if a look-up found damaged pages; any other error counts as a miss."""
        if is_damage(error):
            self.is_faulty = True
            raise store_fault(self.folder, error) from error

    @contextmanager
    def reading(self, db: Any = None) -> Iterator[lmdb.Transaction]:
        try:
            with self.begin(db=db) as transaction:
                yield transaction
        except lmdb.Error as error:
            self.is_faulty = True
            raise store_fault(self.folder, error) from error

    @contextmanager
    def change(self) -> Iterator[lmdb.Transaction]:
        try:
            with self.begin(write=True) as transaction:
                yield transaction
        except (lmdb.Error, OSError) as error:
            self.is_faulty = True
            raise store_fault(self.folder, error) from error

    def close(self) -> None:
        close_store(self.folder)
