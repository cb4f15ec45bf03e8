"""Disk space that is held, and given back when the disk is full, to save what was received. Knows no file beside it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

from .fault import LocalFault


class SpareRoom:
    """Disk space, `size` bytes, held in a folder until it is given back. Its file has no name, so that the end of the
    process frees it too. Raises LocalFault if the disk has no room for it."""

    def __init__(self, folder: Path, size: int = 8 << 20) -> None:
        try:
            with TemporaryFile(dir=folder) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.write(bytes(size))
                    file.flush()
                self._free = finalize(self, os.close, os.dup(file.fileno()))
        except OSError as error:
            raise LocalFault(
                f"{folder}: no room to set {size >> 20} MiB aside ({error.strerror}): free disk space first"
            ) from error

    def give_back(self) -> bool:
        """Frees the space; returns whether there was any."""
        was_held = self._free.alive
        self._free()
        return was_held
