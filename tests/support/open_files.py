"""What this process has open, and waiting until something holds that tells nobody."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


async def eventually(holds: Callable[[], bool], within_s: float) -> None:
    """Return as soon as it holds, fail if it doesn't in time."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 (files and other sides' sockets tell nobody)
            await asyncio.sleep(0.005)
