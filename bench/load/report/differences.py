"""Differences between load tests: how much more or less the later ones measured than the first, with intervals.

Owns which series are compared: the same model, or the first test's only model if it has no other; none if the plans
differ. Rates and tokens a second have no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ....format import figure_text, measured_time, rate_text
from ....metrics.load.intervals import Apart, difference, ratio, seconds
from ....metrics.load.load_json import LoadPart, Times
from ....report.table import Cell, Column, Table
from .plans import plan_differences
from .rate_table import has_several_rates
from .sentences import between
from .series import TIMINGS, LoadSeries, LoadTest
from .tables import stepped

DIFFERENCES = "load-differences"
_PERCENTS = (50.0, 90.0, 99.0)
# Relative error of two histograms with three digits each.
_BUCKET = 0.002
Unit = Literal["s", "share", "1/s"]


class Difference(Struct, frozen=True):
    """A figure (`what`, in `unit`) of `series` compared with the same figure of `first`: their values, the difference
    (`apart`), and their ratio (`times`; None for figures without intervals)."""

    series: LoadSeries
    first: LoadSeries
    what: str
    unit: Unit
    value: float
    of_first: float
    apart: Apart
    times: Apart | None = None


def pairs(every: Sequence[LoadSeries]) -> list[tuple[LoadSeries, LoadSeries]]:
    """Returns each later series with the series of the first test that it is compared with, which has the same plan."""
    if not every:
        return []
    first = [each for each in every if each.test == every[0].test]
    by_model = {each.model: each for each in first}
    found = []
    for each in every:
        if each.test == every[0].test:
            continue
        beside = by_model.get(each.model) or (first[0] if len(first) == 1 else None)
        if beside is not None and not plan_differences(_test_of(each), _test_of(beside)):
            found.append((each, beside))
    return found


def _test_of(series: LoadSeries) -> LoadTest:
    return LoadTest(series.test, series.load)


def differences(every: Sequence[LoadSeries]) -> list[Difference]:
    return [found for each, first in pairs(every) for found in _between(each, first)]


def _between(each: LoadSeries, first: LoadSeries) -> Iterator[Difference]:
    if each.of.goal is not None:
        # A search chooses rates by its server's answers: only figures measured at one rate are comparable.
        yield from _at_rates(each, first)
        return
    yield from _at_rates(each, first)
    # Percentiles over different rates describe none of them, so they stand last and are named as such.
    over = " at all rates" if has_several_rates(first) else ""
    for timing in TIMINGS[:5]:
        yield from _of_times(each, first, f"{timing.title}{over}", timing.of(each.of), timing.of(first.of))
    one, other = each.of.error_share, first.of.error_share
    apart = difference(Apart(one.value, one.low, one.high), Apart(other.value, other.low, other.high))
    yield Difference(each, first, "errors", "share", one.value, other.value, apart)
    for what, value, of_first in (
        ("calls a second", each.of.rate, first.of.rate),
        ("goodput", each.of.goodput, first.of.goodput),
        ("output tokens a second", each.of.output_tokens_per_s, first.of.output_tokens_per_s),
    ):
        if value is not None and of_first is not None:
            yield Difference(each, first, what, "1/s", value, of_first, Apart(value - of_first, None, None))


def _at_rates(each: LoadSeries, first: LoadSeries) -> Iterator[Difference]:
    """Yields the latency differences at rates that both tests asked for, if the first asked for several."""
    of_first = {part.rate: part for part in stepped(first)}
    same: list[tuple[LoadPart, LoadPart]] = [
        (part, of_first[part.rate]) for part in stepped(each) if part.rate in of_first
    ]
    if len(of_first) < 2:
        return
    for part, other in same:
        what = f"latency at {rate_text(part.rate or 0.0)} calls/s"
        yield from _of_times(each, first, what, part.latency, other.latency, percents=(50.0, 99.0))


def _of_times(
    each: LoadSeries, first: LoadSeries, title: str, own: Times, other: Times, *, percents: Sequence[float] = _PERCENTS
) -> Iterator[Difference]:
    for percent in percents:
        of, to = own.at(percent), other.at(percent)
        if of is not None and to is not None:
            apart = difference(seconds(of), seconds(to))
            what = f"{title}, p{percent:g}"
            yield Difference(each, first, what, "s", of.value_s, to.value_s, apart, ratio(of, to))


_COLUMNS: tuple[tuple[Column, Callable[[Difference], Cell]], ...] = (
    (Column("test", "Test"), lambda each: each.series.test),
    (Column("model", "Model"), lambda each: each.series.model),
    (Column("beside_test", "Beside test"), lambda each: each.first.test),
    (Column("beside_model", "Beside model"), lambda each: each.first.model),
    (Column("what", "What"), lambda each: each.what),
    (Column("unit", "Unit"), lambda each: each.unit),
    (Column("value", "Value", "amount"), lambda each: each.value),
    (Column("of_first", "There", "amount"), lambda each: each.of_first),
    (Column("difference", "Difference", "amount"), lambda each: each.apart.value),
    (Column("low", "from", "amount"), lambda each: each.apart.low),
    (Column("high", "to", "amount"), lambda each: each.apart.high),
    (Column("times", "Times as much", "amount"), lambda each: each.times.value if each.times else None),
    (Column("times_low", "from", "amount"), lambda each: each.times.low if each.times else None),
    (Column("times_high", "to", "amount"), lambda each: each.times.high if each.times else None),
)


def differences_table(found: Sequence[Difference]) -> Table:
    """Returns the differences as numbers, for a file."""
    rows = tuple(tuple(cell(each) for _, cell in _COLUMNS) for each in found)
    return Table(DIFFERENCES, "Differences", "", tuple(column for column, _ in _COLUMNS), rows)


def shown_differences(found: Sequence[Difference]) -> Table:
    """Returns the differences for a reader, with units."""
    columns = (
        Column("what", "What"),
        Column("first", found[0].first.name if found else "", "amount"),
        Column("value", found[0].series.name if found else "", "amount"),
        Column("difference", "Difference"),
        Column("times", "Times as much"),
        Column("verdict", "Apart"),
    )
    rows = tuple(
        (
            each.what,
            shown(each.of_first, each.unit),
            shown(each.value, each.unit),
            _with_ends(each.apart, each.unit),
            None if each.times is None else _times(each.times),
            verdict(each),
        )
        for each in found
    )
    return Table(DIFFERENCES, "Differences", "", columns, rows)


def verdict(each: Difference) -> str:
    """Returns "more" or "less" if neither chance nor the width of a histogram's buckets explains the difference; else
    "may be the same", or "not told" if an interval has no end."""
    low, high = each.apart.low, each.apart.high
    if low is None or high is None:
        return "more" if (low or 0.0) > 0 else "less" if (high or 0.0) < 0 else "not told"
    if each.unit == "s" and abs(each.apart.value) <= _BUCKET * max(each.value, each.of_first):
        return "may be the same"
    return "more" if low > 0 else "less" if high < 0 else "may be the same"


def shown(value: float, unit: Unit) -> str:
    match unit:
        case "s":
            # A time below a microsecond is rounding.
            text = measured_time(round(value, 6))
        case "share":
            text = f"{value:.2%}"
        case _:
            text = figure_text(value)
    return text.replace("-", "−")


def _with_ends(apart: Apart, unit: Unit) -> str:
    value = shown(apart.value, unit)
    if apart.value > 0 and any(sign in "123456789" for sign in value):
        value = f"+{value}"
    return between(value, *(None if end is None else shown(end, unit) for end in (apart.low, apart.high)))


def _times(apart: Apart) -> str:
    return between(
        figure_text(apart.value), *(None if end is None else figure_text(end) for end in (apart.low, apart.high))
    )
