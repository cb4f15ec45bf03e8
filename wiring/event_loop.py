"""The event loop of our own programs: uvloop if it is installed, else asyncio's own. The engine itself runs in any
loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns a factory of loops for asyncio.Runner; None: asyncio's default."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
