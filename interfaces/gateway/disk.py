"""Whether the disk takes something again, tried with a file of its own beside the cache. Knows no cache."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_TRIED_BYTES = 4 << 20


def has_room(folder: Path) -> bool:
    """Written for real: free space is told of disks too that take nothing."""
    file = folder / f"room.{os.getpid()}"
    try:
        with file.open("wb") as tried:
            tried.write(bytes(_TRIED_BYTES))
            tried.flush()
            os.fsync(tried.fileno())
    except OSError:
        return False
    else:
        return True
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
