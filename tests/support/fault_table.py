"""The table of the faults of models' providers and what follows from each, which the documentation shows.

The decisions are made where faults are found (transport, llm.faults and the protocols). Statuses are read from there; a
test compares the rest by sending every row through every protocol.
`python tests/support/fault_table.py docs/providers.md` writes the table into the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct, structs

from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.faults import MEANINGS, fault_of

COMMAND = "python tests/support/fault_table.py docs/providers.md"
BEGIN, END = f"<!-- {COMMAND} writes this table -->\n", "<!-- end -->\n"
HEAD = ("fault", "recorded as", "what follows", "quota", "may have been billed", "exit code")
# The statuses of the table: those with a meaning of their own, and others.
_NAMED = (each for statuses, _, _ in MEANINGS if isinstance(statuses, tuple) for each in statuses)
STATUSES = sorted({*_NAMED, 301, 302, 307, 308, 404, 405, 413, 422, 500})
_QUOTAS = {"keep": "kept", "refund": "given back", "settle": "as counted"}


class FaultRow(Struct, frozen=True):
    """One row of the table: a fault and what follows from it. `comes` describes what the provider sends, `recorded` has
    the statuses that a record may get (empty: the call stays pending). `fault` None: it counts as an answer."""

    name: str
    comes: str
    recorded: tuple[str, ...] = ()
    fault: Fault | None = None

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses with this meaning if the body says nothing more precise."""
        return tuple(status for status in STATUSES if self.is_of(fault_of(Response(status, b""))))

    def is_of(self, fault: Fault) -> bool:
        """Returns whether the row describes this fault. A fault that ends a lane leaves its call pending, except for a
        redirect."""
        is_paused = fault.retry_after_s is not None
        is_pending = is_paused or (fault.action in ("stop", "confirm") and fault.kind != "redirect")
        is_recorded = not self.recorded if is_pending else fault.kind in self.recorded
        return is_recorded and self.fault is not None and _what_follows(fault) == _what_follows(self.fault)

    @property
    def is_paused(self) -> bool:
        """Whether the provider states how long to wait; then no attempt is counted."""
        return self.fault is not None and self.fault.retry_after_s is not None

    @property
    def follows(self) -> str:
        fault = self.fault
        if fault is None:
            return "it is an answer"
        match fault.action:
            case "throttle" if self.is_paused:
                return "the lane waits for the time in the header, `--patience` at most; no attempt is counted"
            case "throttle":
                return "tried again, and the lane sends less"
            case "stop":
                return "the lane stops"
            case "confirm":
                return "one probe, then the lane stops"
            case "never":
                return "never again"
        if fault.is_repeated_once:
            return "tried again once"
        return "tried again, and the lane sends less" if fault.cuts_rate else "tried again"

    @property
    def exit_code(self) -> int:
        """The exit code of a run whose calls all meet this fault."""
        if self.fault is None:
            return 0
        return 4 if self.fault.action in ("stop", "confirm") or self.is_paused else 3

    @property
    def cells(self) -> tuple[str, ...]:
        statuses = ", ".join(map(str, self.statuses))
        recorded = ", ".join(f"`{status}`" for status in self.recorded) or "pending"
        billed = "yes" if self.fault is not None and self.fault.is_billed_maybe else "no"
        quota = _QUOTAS["settle" if self.fault is None else self.fault.quota]
        return (self.comes.format(statuses), recorded, self.follows, quota, billed, str(self.exit_code))


def _what_follows(fault: Fault) -> Fault:
    """Returns a fault with what decides, and without all that only describes it."""
    pause_s = None if fault.retry_after_s is None else 0.0
    plain = structs.replace(fault, kind="rejected", detail="", status=None, retry_after_s=pause_s, usage_tokens=None)
    return structs.replace(plain, is_immediate=False, is_full=False)


_BROKEN = Fault("server_error", "", "retry")
_CUT = Fault("incomplete", "", "retry", is_billed_maybe=True)
_REFUSED = Fault("rejected", "", "never")
_DEAD_KEY = Fault("rejected", "", "confirm")
_EMPTY = Fault("empty", "", "retry", quota="settle", is_repeated_once=True)
_PAUSED = Fault("rate_limited", "", "throttle", retry_after_s=1.0)
_UNPAID = Fault("rate_limited", "", "stop")
ROWS = (
    FaultRow(
        "unreachable", "a connection is refused, a host not found", ("connect", "dns"),
        structs.replace(_BROKEN, quota="refund"),
    ),
    FaultRow("hung up", "the connection closes before the answer", ("disconnected",), _CUT),
    FaultRow("broken body", "an answer is reset, cut, or shorter than its `Content-Length`", ("incomplete",), _CUT),
    FaultRow("longer body", "an answer is longer than its `Content-Length`: the declared length counts", ("ok",)),
    FaultRow("late", "no whole answer within the lane's `timeout`", ("timeout",), _CUT),
    FaultRow(
        "truncated JSON", "200 with JSON that ends in the middle; of a stream, an event",
        ("bad_json", "incomplete"), _CUT,
    ),
    FaultRow(
        "error within", "200 with a server's error in it (others: as their code says)", ("server_error",), _BROKEN
    ),
    FaultRow("told to wait", "429 with `Retry-After` or `retry-after-ms`", (), _PAUSED),
    FaultRow("throttled", "{} without", ("rate_limited",), Fault("rate_limited", "", "throttle", cuts_rate=True)),
    FaultRow("empty account", "{}, and other answers that say that the account can't pay", (), _UNPAID),
    FaultRow("server error", "{}", ("server_error",), _BROKEN),
    FaultRow("overloaded", "{}", ("server_error",), structs.replace(_BROKEN, cuts_rate=True)),
    FaultRow("gateway", "{}", ("server_error",), _CUT),
    FaultRow("rejected", "{}", ("rejected",), _REFUSED),
    FaultRow("dead key", "{}, and other answers that say that the key is not valid", (), _DEAD_KEY),
    FaultRow("filtered", "a content filter's refusal, whatever its status", ("refused",)),
    FaultRow("cut by length", "an answer that ends where its tokens did: `truncated`", ("ok",)),
    FaultRow("empty", "an answer without a choice", ("empty",), _EMPTY),
    FaultRow(
        "too large", "more than 16 MiB: dropped there", ("too_large",), structs.replace(_REFUSED, is_billed_maybe=True)
    ),
    FaultRow("no text", "invalid UTF-8, half a surrogate pair: replaced, the bytes kept", ("ok",)),
    FaultRow("ended stream", "a stream cut behind its finish reason", ("ok",)),
    FaultRow("cut stream", "a stream cut before it", ("incomplete",), _CUT),
    FaultRow("redirect", "{}: never followed", ("redirect",), Fault("redirect", "", "stop")),
)  # fmt: skip


def table() -> str:
    """Returns the whole table in Markdown, as the documentation shows it."""
    lines = (HEAD, ("---",) * len(HEAD), *(row.cells for row in ROWS))
    return "".join(f"|{'|'.join(cells)}|\n" if cells[0] == "---" else f"| {' | '.join(cells)} |\n" for cells in lines)


def with_table(page: str) -> str:
    """Returns a page with its table brought up to date. Raises ValueError if the page has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, behind = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the table: lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}{table()}{end}{behind}"


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.stdout.write(table())
        return 0
    for name in arguments:
        try:
            path = Path(name)
            path.write_text(with_table(path.read_text("utf-8")), "utf-8")
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
