"""Which event loop the programs of this room run in: uvloop where it is installed, else asyncio's own.

Whoever brings a loop of their own is asked nothing: the engine runs in any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """As asyncio.Runner wants it; None: its own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
