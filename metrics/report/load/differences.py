"""Tests beside each other: what the later ones measured more or less than the first, with intervals.

Owns which is compared with which. A later test's model is compared with the same model of the first test; where that
has another one alone, with that; and with none where the two had different plans. Rates and tokens a second have no
interval: they are what was asked, and what came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ...load.file import Part, Times
from ...load.intervals import Apart, difference, ratio, seconds
from ..html_tables import amount, duration
from ..table import Cell, Column, Table
from .plans import plan_differences
from .series import TIMINGS, LoadTest, Series
from .tables import stepped
from .words import between, rate_text

DIFFERENCES = "load-differences"
_PERCENTS = (50.0, 90.0, 99.0)
# Histograms keep three digits apart, of either time.
_BUCKET = 0.002
Unit = Literal["s", "share", "1/s"]


class Difference(Struct, frozen=True):
    """`times`: how many times as much as the first, of what has an interval of its own."""

    series: Series
    first: Series
    what: str
    unit: Unit
    value: float
    of_first: float
    apart: Apart
    times: Apart | None = None


def pairs(every: Sequence[Series]) -> list[tuple[Series, Series]]:
    """Each later series of the same plan, and what it is compared with."""
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


def _test_of(series: Series) -> LoadTest:
    return LoadTest(series.test, series.load)


def differences(every: Sequence[Series]) -> list[Difference]:
    return [found for each, first in pairs(every) for found in _between(each, first)]


def _between(each: Series, first: Series) -> Iterator[Difference]:
    if each.of.goal is not None:
        # A search tries the rates that its server's answers lead it to: only what was measured at one rate compares.
        yield from _at_rates(each, first)
        return
    for timing in TIMINGS[:5]:
        yield from _of_times(each, first, timing.title, timing.of(each.of), timing.of(first.of))
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
    yield from _at_rates(each, first)


def _at_rates(each: Series, first: Series) -> Iterator[Difference]:
    """Where both asked for the same rate, and not for one alone."""
    of_first = {part.rate: part for part in stepped(first)}
    same: list[tuple[Part, Part]] = [(part, of_first[part.rate]) for part in stepped(each) if part.rate in of_first]
    if len(of_first) < 2:
        return
    for part, other in same:
        what = f"latency at {rate_text(part.rate or 0.0)} calls/s"
        yield from _of_times(each, first, what, part.latency, other.latency, percents=(50.0, 99.0))


def _of_times(
    each: Series, first: Series, title: str, own: Times, other: Times, *, percents: Sequence[float] = _PERCENTS
) -> Iterator[Difference]:
    for percent in percents:
        of, to = own.at(percent), other.at(percent)
        if of is not None and to is not None:
            apart = difference(seconds(of), seconds(to))
            what = f"{title}, p{percent:g}"
            yield Difference(each, first, what, "s", of.value_s, to.value_s, apart, ratio(of, to))


def differences_table(found: Sequence[Difference]) -> Table:
    """In numbers, for its file."""
    columns = (
        Column("test", "Test"),
        Column("model", "Model"),
        Column("beside_test", "Beside test"),
        Column("beside_model", "Beside model"),
        Column("what", "What"),
        Column("unit", "Unit"),
        Column("value", "Value", "amount"),
        Column("of_first", "There", "amount"),
        Column("difference", "Difference", "amount"),
        Column("low", "from", "amount"),
        Column("high", "to", "amount"),
        Column("times", "Times as much", "amount"),
        Column("times_low", "from", "amount"),
        Column("times_high", "to", "amount"),
    )
    rows = tuple(
        (
            each.series.test,
            each.series.model,
            each.first.test,
            each.first.model,
            each.what,
            each.unit,
            each.value,
            each.of_first,
            *_ends(each.apart),
            *(_ends(each.times) if each.times is not None else (None, None, None)),
        )
        for each in found
    )
    return Table(DIFFERENCES, "Differences", "", columns, rows)


def shown_differences(found: Sequence[Difference]) -> Table:
    """The same for a reader: each value in its unit."""
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
    """Whether chance alone may have made the difference, or the width of a histogram's buckets."""
    low, high = each.apart.low, each.apart.high
    if low is None or high is None:
        return "more" if (low or 0.0) > 0 else "less" if (high or 0.0) < 0 else "not told"
    if each.unit == "s" and abs(each.apart.value) <= _BUCKET * max(each.value, each.of_first):
        return "may be the same"
    return "more" if low > 0 else "less" if high < 0 else "may be the same"


def shown(value: float, unit: Unit) -> str:
    # A time below a microsecond is rounding.
    text = duration(round(value, 6)) if unit == "s" else f"{100 * value:.2f}%" if unit == "share" else amount(value)
    return text.replace("-", "−")


def _with_ends(apart: Apart, unit: Unit) -> str:
    value = shown(apart.value, unit)
    if apart.value > 0 and any(sign in "123456789" for sign in value):
        value = f"+{value}"
    return between(value, *(None if end is None else shown(end, unit) for end in (apart.low, apart.high)))


def _times(apart: Apart) -> str:
    return between(amount(apart.value), *(None if end is None else amount(end) for end in (apart.low, apart.high)))


def _ends(apart: Apart) -> tuple[Cell, Cell, Cell]:
    return apart.value, apart.low, apart.high
