"""Estimates from a pilot: calls, tokens, cost and time of what is left on each lane, each with a 95% interval, and the
share of answers that failed, were refused or were cut.

Pure functions from what items used to values. Their text: pilot_text.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import add
from statistics import median
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, structs, to_builtins

from ....engine.call import WEB
from ....engine.fault import Stop
from ....metrics.statistics.ratio import Estimate, RatioSample, Totals, totals
from ....metrics.statistics.shares import share_interval
from ..door.expected import Missing, Remainder
from ..running.cost_bound import in_flight_under_limit
from .pilot import ItemUse, JournalLine, LaneUse, Pilot, Stratum

Rng = np.random.Generator
# Fixed, so that the same answers always give the same intervals.
SEED = 5_150_623
_AMOUNTS = ("calls", "input", "output", "input_cost", "output_cost")
_COSTS = {"input_cost": 1.0, "output_cost": 1.0}
# How often the end of a run is drawn, and for how many things a place.
_DRAWS = 200
_DRAWN_PER_PLACE = 3
# The amounts that grow with a prompt's characters, where these are known.
_BY_CHARS = ("input", "input_cost")


class Figure(Struct, frozen=True):
    """An estimate with its interval; None: one item alone has none."""

    estimate: float
    ci95: tuple[float, float] | None


_Figure = TypeVar("_Figure", bound=Figure)


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


class Minutes(Figure, frozen=True):
    """The time that the rest takes: the largest of its bounds. `bound_by`: requests, tokens or concurrency of the
    `lane`, or items whose calls follow each other; None: nothing is left."""

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

    def of(self, lanes: Container[str], weights: Mapping[str, float]) -> Figure:
        """Returns the weighted sum of amounts of some lanes."""
        times = [weights.get(amount, 0.0) if lane in lanes else 0.0 for lane, amount in self._columns]
        return _figure(self._totals.of(times))


def figures_of(pilot: Pilot, missing: Missing) -> list[PilotFigures]:
    """Returns the estimates of each model, or of all together where an item takes several calls. `missing`: the calls
    left to send, where an item is one."""
    if not pilot.chosen.calls:
        return [_figures(pilot.strata, pilot, missing, pilot.chosen.run.lanes)]
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


def _figures(strata: Sequence[Stratum], pilot: Pilot, missing: Missing, run_lanes: tuple[str, ...]) -> PilotFigures:
    chosen, rng = pilot.chosen, np.random.default_rng(SEED)
    prices = chosen.run.settings.price_table()
    left = [_left(stratum, missing) for stratum in strata]
    whole = [stratum.whole for stratum in strata]
    measured = [[item for item in items if item.is_measured] for items in whole]
    items = list(chain.from_iterable(measured))
    used = dict.fromkeys(lane for item in items for lane in item.lanes)
    lanes = tuple(dict.fromkeys([*run_lanes, *used]))
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
        line=chosen.noun if chosen.calls else chosen.run.benchmark.unit,
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
        minutes=None if rest is None else _minutes(rest, strata, lanes, pilot, rng),
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
    calls, read, written = (rest.of((lane,), {amount: 1.0}) for amount in ("calls", "input", "output"))
    return LaneFigures(lane, calls, read, written, rest.of((lane,), _COSTS) if is_priced else None)


def _minutes(rest: _Rest, strata: Sequence[Stratum], lanes: Sequence[str], pilot: Pilot, rng: Rng) -> Minutes | None:
    """Returns the time that the rest needs: the largest bound of all lanes, by requests, tokens and calls in flight,
    and of the items that run at once, whose calls follow each other. None: there is none, since nothing was sent and no
    quota is known, or no item was timed."""
    chosen, all_calls = pilot.chosen, rest.of(lanes, {"calls": 1.0})
    if not all_calls.estimate:
        return Minutes(all_calls.estimate, all_calls.ci95)
    bounds: list[Minutes] = []
    for lane in lanes:
        latencies = [ms / 1_000 for stratum in strata for ms in stratum.latencies.get(lane, ())]
        bounds += _bounds_of(lane, rest, latencies, pilot, rng)
    if not chosen.calls:
        if not (seconds := strata[0].seconds):
            return None
        # While the first items reach a lane, and while the last ones end, it has less to do than it could.
        edge = median(seconds) / 60 / 2
        bounds = [_moved(bound, edge) if bound.estimate else bound for bound in bounds]
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


def _bounds_of(lane: str, rest: _Rest, latencies: Sequence[float], pilot: Pilot, rng: Rng) -> Iterator[Minutes]:
    """Yields the times that one lane's quotas and its calls in flight allow. `latencies` are in seconds."""
    run = pilot.chosen.run
    settings, calls = run.settings, rest.of((lane,), {"calls": 1.0}).estimate
    quota = pilot.quotas.get(lane) or settings.quota_of(lane)
    # A call that is under way takes its longest answer from the quota; what it did not use is given back then.
    longest, output = run.max_tokens.get(lane), rest.of((lane,), {"output": 1.0}).estimate
    unused = 0.0 if longest is None or not calls else max(0.0, longest - output / calls)
    held = unused * min(1.0, _mean(latencies) / 60)
    for name, most, weights in (
        ("requests", quota.rpm, {"calls": 1.0}),
        ("tokens", quota.tpm, {"input": 1.0, "output": 1.0, "calls": held}),
        ("input tokens", quota.itpm, {"input": 1.0}),
        ("output tokens", quota.otpm, {"output": 1.0, "calls": held}),
    ):
        if most is not None:
            figure = rest.of((lane,), {amount: weight / most for amount, weight in weights.items()})
            yield Minutes(figure.estimate, figure.ci95, name, lane)
    if calls and latencies:
        at_once = settings.concurrency_of(lane)
        for row in in_flight_under_limit(run):
            if row["lane"] == lane:
                at_once = max(1, min(at_once, row["in_flight"]))
        figure = _side_by_side(latencies, calls, at_once, rng)
        yield Minutes(figure.estimate, figure.ci95, "concurrency", lane)


def _side_by_side(seconds: Sequence[float], count: float, at_once: float, rng: Rng) -> Figure:
    """Returns the minutes that `count` things take of which `at_once` run at a time, each begun as another ends, where
    some took these seconds.

    The end is drawn many times, thing by thing, since the last ones run while no others are left to begin; before it,
    all places are taken. The seconds are smoothed, because a small sample rarely holds the longest ones; none is drawn
    that is twice as long as the longest.
    """
    logs, number = np.log(np.maximum(np.sort(seconds), 1e-6)), max(1, round(count))
    places = max(1, min(round(at_once), number))
    last = min(number, _DRAWN_PER_PLACE * places)
    ends: list[float] = []
    for _ in range(_DRAWS):
        sample = rng.choice(logs, len(logs))
        mean, spread = sample.mean(), sample.std()
        # Silverman's width, by which the spread grows and is divided again.
        width = 1.06 * spread * len(logs) ** -0.2
        noise = width * rng.standard_normal(last)
        shrunk = 1.0 if spread == 0 else spread / np.hypot(spread, width)
        each = np.exp(mean + (rng.choice(sample, last) - mean + noise) * shrunk)
        free = [0.0] * places
        for duration in np.minimum(each, 2 * np.exp(logs[-1])).tolist():
            heapq.heapreplace(free, free[0] + duration)
        ends.append(max(free) + (number - last) * float(np.exp(sample).mean()) / places)
    low, middle, high = (float(each) / 60 for each in np.quantile(ends, (0.025, 0.5, 0.975)))
    return Figure(middle, None if len(logs) < 2 else (low, high))


def _mean(amounts: Sequence[float]) -> float:
    return sum(amounts) / len(amounts) if amounts else 0.0


def _figure(estimate: Estimate) -> Figure:
    return Figure(estimate.value, estimate.interval)


def _moved(figure: _Figure, by: float) -> _Figure:
    interval = None if figure.ci95 is None else (figure.ci95[0] + by, figure.ci95[1] + by)
    return structs.replace(figure, estimate=figure.estimate + by, ci95=interval)


def _ratio(amount: float, size: float) -> float | None:
    return amount / size if size else None


def _share(count: int, of: int) -> Share:
    return Share(count, of, share_interval(count, of) if of else None)
