"""Numbers and long lists as people read them: money, times, rates, counts and shares. Never for JSON and CSV.

Imports nothing of ours, so that every package can use it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence


def count_text(number: int, one: str, several: str = "") -> str:
    """Returns a number with its noun: `1 call`, `1,200 calls`. `several` is the plural where it is not `one` and s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def by_kind(counts: Mapping[str, int]) -> str:
    """Returns each kind with its count, the most frequent first: `timeout 12, server_error 3`."""
    return listed_counts(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def listed_counts(counts: Mapping[str, int]) -> str:
    """Returns each kind with its count, in this order."""
    return ", ".join(f"{kind} {number:,}" for kind, number in counts.items())


def first_of(things: Sequence[object], most: int, between: str = ", ") -> str:
    """Returns the first `most` things, and how many more there are: `tea, bees and 1,200 more`."""
    more = f" and {len(things) - most:,} more" if len(things) > most else ""
    return f"{between.join(map(str, things[:most]))}{more}"


def command_text(*words: object) -> str:
    """Returns a command of ours as a shell reads it: `millstream resume 'runs/my run'`."""
    return shlex.join(("millstream", *map(str, words)))


def decimal_text(value: float | None, places: int = 0) -> str:
    """Returns a number with a fixed number of decimals, `-` for one that is missing."""
    return "-" if value is None else f"{value:,.{places}f}"


def figure_text(number: float) -> str:
    """Returns a measured number with three significant digits, and with all its digits before the point."""
    if number == 0 or abs(number) >= 99.95:
        return f"{number:,.0f}"
    if abs(number) < 0.001:
        return f"{number:.2g}"
    # Rounded first: 0.9996 has one digit before the point.
    return f"{number:.{2 - math.floor(math.log10(abs(float(f'{number:.3g}'))))}f}"


def percent_text(share: float) -> str:
    """Returns a share of 1 as a percentage with one decimal. One that would round to nothing is `below 0.1%`."""
    return "below 0.1%" if 0 < share < 0.001 else f"{share:.1%}"


def part_of(part: int, whole: int, what: str = "answers") -> str:
    """Returns a part of a whole in words: `3 of its 1,200 answers (0.3%)`."""
    return f"{part:,} of its {whole:,} {what} ({percent_text(part / whole)})"


def span_text(ends: Iterable[float], write: Callable[[float], str]) -> str:
    """Returns two numbers as `low to high`, each written by `write`; only one of them if both look the same."""
    low, high = map(write, ends)
    return low if low == high else f"{low} to {high}"


def dollars(amount: float) -> str:
    """Returns an amount in cents, and below a dollar at least its first two significant digits. Less than a billionth
    of a dollar is the rounding of a sum, and reads as 0."""
    if abs(amount) < 1e-9:
        return "$0.00"
    if amount < 0:
        return f"-{dollars(-amount)}"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.{1 - math.floor(math.log10(amount))}f}"


def cost_of_calls(cost: float, sent: int, unpriced: int) -> str:
    """Returns the dollars of `sent` calls, of which `unpriced` have no known price."""
    if not unpriced:
        return f"${cost:,.4f}"
    if unpriced == sent:
        return "unknown (no price)"
    return f"${cost:,.4f} and {count_text(unpriced, 'call')} without a price"


def rate_text(per_s: float) -> str:
    """Returns a rate with four significant digits and without its unit, since a rate that was asked for must read as
    it was written."""
    return f"{per_s:,.0f}" if per_s >= 1_000 else f"{per_s:.4g}"


def clock(seconds: float) -> str:
    """Returns a running time as a display shows it: `0:05`, `12:34`, `1:02:03`, from a hundred hours on `4 days`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:
        return f"{hours // 24:,} days"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def measured_time(seconds: float) -> str:
    """Returns a time that was measured, with three significant digits, in µs, ms or s."""
    if seconds and abs(seconds) < 0.0001:
        return f"{figure_text(1_000_000 * seconds)} µs"
    if seconds and abs(seconds) < 0.9995:
        return f"{figure_text(1000 * seconds)} ms"
    return f"{figure_text(seconds)} s"


def rough_time(seconds: float) -> str:
    """Returns a time that was estimated, or long ago: in seconds below three minutes, then in minutes and hours."""
    if seconds < 180:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{max(0.0, seconds):.2g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def rough_minutes(minutes: float) -> str:
    """Returns a time as `rough_time` does, from minutes."""
    return rough_time(60 * minutes)


def size_text(count: float) -> str:
    """Returns a number of bytes in the largest unit that leaves a number above one."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
