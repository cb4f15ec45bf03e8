"""A caller's listener, kept from spoiling the answer that it listens to.

What it raises is no fault of the attempt: an answer that is paid for is finished and stored, and the error is kept for
the caller.
"""

from __future__ import annotations

from ..engine.endpoint import Hear


class Listening:
    """Tells `hear` until it raises, and nothing more from then on."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self.error: Exception | None = None

    def __repr__(self) -> str:
        return f"<Listening [{self.error or 'no error'}]>"

    def __call__(self, piece: str | None) -> None:
        if self.error is None:
            try:
                self._hear(piece)
            except Exception as error:  # noqa: BLE001  (the caller's own code; it is raised where that waits)
                self.error = error
