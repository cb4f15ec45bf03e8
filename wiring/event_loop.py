"""The event loop of the programs in this room: uvloop if it is installed, else asyncio's own. The engine runs in any
loop.

Whoever brings a loop of their own is asked nothing: the engine runs in any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns a factory for asyncio.Runner; None: asyncio's default."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
