"""Keeps outcomes: stores them, writes them to the sinks of those who asked, and only then lets the call end.

Owns that order, and what follows if our own machine or a sink fails. Where answers lie: store/cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import MsgspecError, structs

from .call import Outcome
from .endpoint import Response
from .fault import LocalFault, StopReason
from .shared_calls import SharedCall
from .sink import Sink
from .store.cache import Cache

# What the encoder raises for an entry that can't become bytes, such as half a character in a header.
_NOT_ENCODED = (ValueError, TypeError, OverflowError, MsgspecError)


class Keeper:
    """The keeper of all outcomes of an engine. `halt` ends all sending."""

    def __init__(self, cache: Cache, halt: Callable[[StopReason, str], None]) -> None:
        self._cache = cache
        self._halt = halt

    def keep(self, call: SharedCall, outcome: Outcome, response: Response | None, *, is_last: bool) -> None:
        """Stores an outcome, then its journal line is written: it follows the commit, so one write serves many. Then
        `call.kept` is called. `is_last`: no other answer is on its way that could share the commit."""
        pending, cache = call.pending, self._cache
        if not pending.route.is_kept:
            self.write_first(call, outcome)
            call.kept(outcome)
            return
        line = call.line_of(outcome)
        url = pending.request.url if pending.route.is_page else ""
        done = partial(self._kept, call, outcome)
        try:
            if outcome.failure is not None:
                cache.put_failure(pending.key, pending.request, outcome.failure, response, done, url=url, line=line)
                return
            assert response is not None
            if response.headers and not pending.route.is_page:
                # These headers are about quotas at this moment; a page's describe the page.
                response = structs.replace(response, headers={})
            trial = pending.call.trial
            cache.put(pending.key, pending.request, trial, response, done, is_last=is_last, url=url, line=line)
        except _NOT_ENCODED:
            # It reaches its caller but is not stored: the next identical call is sent again.
            self.write_first(call, outcome)
            call.kept(outcome)

    def _kept(self, call: SharedCall, outcome: Outcome, error: Exception | None) -> None:
        line = call.line
        if isinstance(error, LocalFault):
            # The outcome still reaches the journal; nothing more is sent.
            self._halt("local_fault", str(error))
            self.write_first(call, outcome)
        elif error is not None:
            call.fail_first(error)  # its sink's; the others have their answer
        if line is not None and line.sink is not None and line.sink.fault is not None:
            self._halt("local_fault", str(line.sink.fault))
        call.kept(outcome)

    def write_first(self, call: SharedCall, outcome: Outcome) -> None:
        """Writes an outcome to the sink of the waiter that began the call; the others write it to their own."""
        if (first := call.first) is not None:
            try:
                self.write(outcome, first.sink)
            except Exception as error:  # noqa: BLE001 (as in _kept)
                call.fail_first(error)

    def write(self, outcome: Outcome, sink: Sink | None) -> None:
        """Writes an outcome to a sink, at once."""
        if sink is not None:
            sink.write(outcome)
            sink.flush()
            if sink.fault is not None:
                self._halt("local_fault", str(sink.fault))
