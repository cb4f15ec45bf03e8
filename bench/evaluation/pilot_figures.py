"""Estimates from a pilot: calls, tokens, cost and time of what is left on each lane, each with a 95% interval, and the
share of answers that failed, were refused or were cut.

Pure functions from what items used to values. Their text: pilot_text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from ...engine.call import WEB
from ...engine.fault import Stop
from ...metrics.statistics.ratio import Estimate, RatioSample, Totals, totals
from ...metrics.statistics.shares import share_interval
from .forecast import Missing
from .pilot import ItemUse, JournalLine, LaneUse, Pilot, Stratum
from .preparation import ItemsOfPilot
from .work import Remainder

Rng = np.random.Generator
# Fixed, so that the same answers always give the same intervals.
SEED = 5_150_623
_AMOUNTS = ("calls", "input", "output", "input_cost", "output_cost")
_COSTS = ("input_cost", "output_cost")
# The amounts that grow with a prompt's characters, where these are known.
_BY_CHARS = ("input", "input_cost")


class Figure(Struct, frozen=True):
    """An estimate with its interval; None: one item alone has none."""

    estimate: float
    ci95: tuple[float, float] | None


class LaneFigures(Struct, frozen=True):
    """What is left on one lane. `cost` None: the lane has no price."""

    lane: str
    calls: Figure
    input_tokens: Figure
    output_tokens: Figure
    cost: Figure | None


class Share(Struct, frozen=True):
    """A share of answers with its exact interval; None: there is no answer."""

    count: int
    of: int
    ci95: tuple[float, float] | None


class Failures(Struct):
    """The number of failures of one kind, and the message of the first."""

    count: int
    detail: str


class Minutes(Struct, frozen=True):
    """The time that the rest takes: the largest of its bounds. `bound_by`: requests, tokens or concurrency of the
    `lane`, or items whose calls follow each other; None: nothing is left."""

    estimate: float
    ci95: tuple[float, float] | None
    bound_by: str | None = None
    lane: str | None = None


class PilotFigures(Struct, frozen=True, kw_only=True):
    """The estimates for one model, or for all where an item takes several calls. None in place of a figure: there is
    no estimate, or no price.

    The pilot had `items` of the run's `of`; `pending` ones did not run to their end, for the reason of a `stop`,
    `whole` ones did without a failure, and of `measured` ones the tokens of all answers are known. `line`: the noun for
    what failed, was refused or cut. `left`: the items still to send, to which `lanes`, costs and `minutes` belong. The
    measures of one answer are given where an item is one call.
    """

    models: tuple[str, ...]
    noun: str
    line: str
    items: int
    of: int
    pending: int
    stop: Stop | None
    whole: int
    measured: int
    sent: int
    from_cache: int
    spent: float | None
    left: int
    lanes: tuple[LaneFigures, ...] | None
    unpriced: tuple[str, ...]
    cost: Figure | None
    cost_with_pilot: Figure | None
    minutes: Minutes | None
    tokens_per_character: float | None
    output_tokens_each: float | None
    latency_ms: float | None
    failed: Share
    refused: Share
    truncated: Share
    failures: dict[str, Failures]
    maybe_billed: int


class _Rest:
    """What is left to send, estimated for each amount of each lane together, so that their sums have intervals too."""

    def __init__(self, strata: Iterable[tuple[Sequence[ItemUse], Remainder]], lanes: Sequence[str], rng: Rng) -> None:
        self._columns = [(lane, amount) for lane in lanes for amount in _AMOUNTS]
        self._totals = reduce(add, (self._total(items, left, rng) for items, left in strata))

    def _total(self, items: Sequence[ItemUse], left: Remainder, rng: Rng) -> Totals:
        none = LaneUse()
        uses = [[item.lanes.get(lane, none) for lane, _ in self._columns] for item in items]
        names = [amount for _, amount in self._columns]
        shape = (-1, len(names))
        amounts = [[getattr(use, name) for use, name in zip(row, names, strict=True)] for row in uses]
        sizes = [
            [use.chars or 1 if name in _BY_CHARS else 1 for use, name in zip(row, names, strict=True)] for row in uses
        ]
        of_rest = [left.chars if name in _BY_CHARS and left.chars is not None else left.prompts for name in names]
        seen, size = (np.array(each, dtype=np.float64).reshape(shape) for each in (amounts, sizes))
        return totals(RatioSample(seen, size, left.prompts, np.array(of_rest, dtype=np.float64)), rng)

    def of(self, lanes: Container[str], amounts: Container[str], times: float = 1.0) -> Figure:
        """Returns the sum of some amounts of some lanes, times a factor."""
        weights = [times if lane in lanes and amount in amounts else 0.0 for lane, amount in self._columns]
        return _figure(self._totals.of(weights))


def figures_of(pilot: Pilot, missing: Missing) -> list[PilotFigures]:
    """Returns the estimates of each model, or of all together where an item takes several calls. `missing`: the calls
    left to send, where an item is one."""
    if not pilot.chosen.calls:
        return [_figures(pilot.strata, pilot, missing, pilot.chosen.run.work.lanes)]
    models: dict[str, list[Stratum]] = {}
    for stratum in pilot.strata:
        models.setdefault(stratum.pairs[0].model, []).append(stratum)
    return [_figures(strata, pilot, missing, (model,)) for model, strata in models.items()]


def as_json(pilot: Pilot, figures: Sequence[PilotFigures]) -> dict[str, Any]:
    """Returns how a pilot ended, and its estimates, for programs."""
    return {
        "exit_code": pilot.exit_code,
        "signal": pilot.end.signal,
        "maybe_billed_pending": pilot.end.maybe_billed,
        "remark": pilot.chosen.remark,
        "estimates": to_builtins(figures),
    }


def _figures(strata: Sequence[Stratum], pilot: Pilot, missing: Missing, asked: tuple[str, ...]) -> PilotFigures:
    chosen, rng = pilot.chosen, np.random.default_rng(SEED)
    prices = chosen.run.settings.price_table()
    left = [_left(stratum, missing) for stratum in strata]
    whole = [stratum.whole for stratum in strata]
    measured = [[item for item in items if item.is_measured] for items in whole]
    items = list(chain.from_iterable(measured))
    used = dict.fromkeys(lane for item in items for lane in item.lanes)
    lanes = tuple(dict.fromkeys([*asked, *used]))
    unpriced = tuple(lane for lane in lanes if lane in used and lane != WEB and prices.get(lane) is None)
    is_known = all(items or not rest.prompts for items, rest in zip(measured, left, strict=True))
    rest = _Rest(zip(measured, left, strict=True), lanes, rng) if is_known else None
    cost = None if rest is None or unpriced else rest.of(lanes, _COSTS)
    has_price = any(prices.get(lane) is not None for lane in lanes)
    spent = sum(stratum.paid for stratum in strata) if has_price else None
    number = sum(stratum.chosen for stratum in strata)
    # The tokens of one call say something about others where an item is one.
    uses = [use for item in items for use in item.lanes.values() if use.chars]
    latencies = sorted(ms for each in strata for ms in each.latencies.get(lanes[0], ())) if chosen.calls else []
    records = [line for stratum in strata for line in stratum.records]
    failures = [line for stratum in strata for line in stratum.failures]
    return PilotFigures(
        models=tuple(dict.fromkeys(pair.model for stratum in strata for pair in stratum.pairs)),
        noun=chosen.noun,
        line=chosen.noun if chosen.calls else chosen.run.work.item,
        items=number,
        of=sum(stratum.of for stratum in strata),
        pending=number - sum(len(stratum.ended) for stratum in strata),
        stop=next((stop for stop in pilot.end.stops if not chosen.calls or stop.lane in lanes), None),
        whole=sum(map(len, whole)),
        measured=len(items),
        sent=sum(stratum.sent for stratum in strata),
        from_cache=sum(stratum.from_cache for stratum in strata),
        spent=spent,
        left=sum(each.prompts for each in left),
        lanes=None if rest is None else tuple(_lane(lane, rest, is_priced=lane not in unpriced) for lane in lanes),
        unpriced=unpriced,
        cost=cost,
        cost_with_pilot=None if cost is None or spent is None else _moved(cost, spent),
        minutes=None if rest is None else _minutes(rest, strata, lanes, chosen, rng),
        tokens_per_character=_ratio(sum(use.input for use in uses), sum(use.chars for use in uses)),
        output_tokens_each=_ratio(sum(use.output for use in uses), len(uses)),
        latency_ms=_ratio(sum(latencies), len(latencies)),
        failed=_share(len(failures), len(failures) + len(records)),
        refused=_share(sum(line.status == "refused" for line in records), len(records)),
        truncated=_share(sum(line.truncated for line in records), len(records)),
        failures=_by_kind(failures),
        maybe_billed=sum(stratum.maybe_billed for stratum in strata),
    )


def _by_kind(failures: Iterable[JournalLine]) -> dict[str, Failures]:
    kinds: dict[str, Failures] = {}
    for line in failures:
        kinds.setdefault(line.status, Failures(0, " ".join((line.error or "").split()))).count += 1
    return kinds


def _left(stratum: Stratum, missing: Missing) -> Remainder:
    """Returns the items still to send. Where the cache was searched, that has left out what the pilot answered."""
    whole = stratum.whole
    if (pair := stratum.pairs[0]) not in missing:
        return Remainder(stratum.of - len(whole), None)
    left, cached = missing[pair]
    if cached is not None or left.chars is None:
        return left
    return Remainder(left.prompts - len(whole), left.chars - sum(item.lanes[pair.model].chars for item in whole))


def _lane(lane: str, rest: _Rest, *, is_priced: bool) -> LaneFigures:
    calls, read, written = (rest.of((lane,), (amount,)) for amount in ("calls", "input", "output"))
    return LaneFigures(lane, calls, read, written, rest.of((lane,), _COSTS) if is_priced else None)


def _minutes(
    rest: _Rest, strata: Sequence[Stratum], lanes: Sequence[str], chosen: ItemsOfPilot, rng: Rng
) -> Minutes | None:
    """Returns the time that the rest needs: the largest bound of all lanes, by requests, tokens and calls in flight,
    and of the items that run at once, whose calls follow each other. None: there is none, since nothing was sent and no
    quota is declared."""
    settings, all_calls = chosen.run.settings, rest.of(lanes, ("calls",))
    if not all_calls.estimate:
        return Minutes(all_calls.estimate, all_calls.ci95)
    bounds: list[Minutes] = []
    for lane in lanes:
        calls, quota = rest.of((lane,), ("calls",)).estimate, settings.quota_of(lane)
        for name, most, amounts in (
            ("requests", quota.rpm, ("calls",)),
            ("tokens", quota.tpm, ("input", "output")),
            ("input tokens", quota.itpm, ("input",)),
            ("output tokens", quota.otpm, ("output",)),
        ):
            if most is not None:
                figure = rest.of((lane,), amounts, 1 / most)
                bounds.append(Minutes(figure.estimate, figure.ci95, name, lane))
        latencies = [ms / 1_000 for stratum in strata for ms in stratum.latencies.get(lane, ())]
        if calls and latencies:
            figure = _side_by_side(latencies, calls, settings.concurrency_of(lane), rng)
            bounds.append(Minutes(figure.estimate, figure.ci95, "concurrency", lane))
    seconds = [] if chosen.calls else strata[0].seconds
    if seconds:
        items = (strata[0].of - len(strata[0].whole)) * len(strata[0].pairs)
        figure = _side_by_side(seconds, items, chosen.at_once, rng)
        bounds.append(Minutes(figure.estimate, figure.ci95, f"{chosen.noun}s whose calls follow each other"))
    if not bounds:
        return None
    slowest = max(bounds, key=lambda bound: bound.estimate)
    intervals = [bound.ci95 for bound in bounds if bound.ci95 is not None]
    is_known = len(intervals) == len(bounds)
    interval = (max(low for low, _ in intervals), max(high for _, high in intervals)) if is_known else None
    return Minutes(slowest.estimate, interval, slowest.bound_by, slowest.lane)


def _side_by_side(seconds: Sequence[float], count: float, at_once: float, rng: Rng) -> Figure:
    """Returns the minutes that `count` things take of which `at_once` run at a time and some took these seconds."""
    each = np.array(sorted(seconds), dtype=np.float64).reshape(-1, 1)
    busy_s = totals(RatioSample(each, np.ones_like(each), max(1, round(count)), np.array([float(count)])), rng)
    return _figure(busy_s.of((1 / 60 / min(at_once, max(1.0, count)),)))


def _figure(estimate: Estimate) -> Figure:
    return Figure(estimate.value, estimate.interval)


def _moved(figure: Figure, by: float) -> Figure:
    return Figure(figure.estimate + by, None if figure.ci95 is None else (figure.ci95[0] + by, figure.ci95[1] + by))


def _ratio(amount: float, size: float) -> float | None:
    return amount / size if size else None


def _share(count: int, of: int) -> Share:
    return Share(count, of, share_interval(count, of) if of else None)
