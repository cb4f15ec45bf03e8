"""The addresses that have never answered, and why: each cause is logged once, as soon as it appears.

One object an engine, shared by all its channels, so that a wrong address is reported while retries go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from yarl import URL

from ...engine.endpoint import Fault
from ...engine.remarks import trouble
from ...format import rough_time
from .connection_faults import advice_of, fault_of

# A server may close one connection without an answer by accident; a wrong port closes all of them.
_CLOSED_MIN = 3
_LOOK_S = 1.0


class UnansweredAddresses:
    """The addresses that have never answered. `texts` has the latest cause of each. `patience_s`: how long calls to
    them are repeated, to be logged with a cause; None: they are not."""

    def __init__(self, patience_s: float | None = None) -> None:
        self._advice = ""
        if patience_s is not None:
            self._advice = f" Calls are repeated for {rough_time(patience_s)} (--patience); stop with Ctrl-C."
        self._answered: set[URL] = set()
        self._latest: dict[URL, str] = {}
        self._seen: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<UnansweredAddresses [{len(self._latest)}]>"

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._latest.values()))

    def note_answer(self, url: URL) -> None:
        """Records that an address has sent an HTTP answer of any status: what fails from then on is no mistake in the
        address."""
        origin = url.origin()
        self._answered.add(origin)
        self._latest.pop(origin, None)

    def note_fault(self, url: URL, fault: Fault) -> None:
        """Records a fault of an address, and logs its cause the first time if the address has never answered."""
        origin = url.origin()
        if origin in self._answered or not (text := advice_of(fault, origin)):
            return
        self._seen[text] += 1
        least = 1 if fault.kind in ("connect", "dns") else _CLOSED_MIN
        if self._seen[text] >= least:
            self._latest[origin] = text
        if self._seen[text] == least:
            trouble(f"{text}{self._advice}")

    async def look_at(self, address: str) -> None:
        """Opens a connection to an address and closes it, so that a refusal is logged before the first call, which may
        be due later. Other faults are left to that call."""
        url = URL(address)
        try:
            async with asyncio.timeout(_LOOK_S):
                _, writer = await asyncio.open_connection(url.host, url.port)
        except ConnectionRefusedError as error:
            self.note_fault(url, fault_of(error, _LOOK_S, url))
        except (OSError, TimeoutError):
            pass
        else:
            writer.close()

    def note_path(self, text: str) -> None:
        """Logs advice about the path of an address, once."""
        self._seen[text] += 1
        if self._seen[text] == 1:
            trouble(text)
