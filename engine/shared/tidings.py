"""What one process learned from an answer and all that use the same API key have to know: it follows a lane's words."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..fault import Stop
from ..limits import Limit


class Tidings(Struct, frozen=True, omit_defaults=True):
    """Limits that an answer reported, until when calls are paused, and why the API key is of no use, with the time at
    which this was learned. Times are in the owner's seconds."""

    limits: tuple[Limit, ...] = ()
    paused_until: float = 0.0
    stop: Stop | None = None
    stopped_at: float = 0.0

    def joined(self, later: Tidings, at: float) -> Tidings:
        """Returns these with later ones, whose pause begins now."""
        renewed = {limit.of for limit in later.limits}
        others = tuple(limit for limit in self.limits if limit.of not in renewed)
        paused_until = max(self.paused_until, at + later.paused_until) if later.paused_until else self.paused_until
        stop, stopped_at = (self.stop, self.stopped_at) if later.stop is None else (later.stop, at)
        return Tidings((*others, *later.limits), paused_until, stop, stopped_at)


NOTHING = Tidings()


def tidings_in(text: bytes) -> Tidings:
    """Returns the tidings in a text; none if it is empty or damaged."""
    try:
        return msgspec.json.decode(text, type=Tidings)
    except (msgspec.MsgspecError, UnicodeError):
        return NOTHING
