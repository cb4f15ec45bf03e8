"""Estimates from a pilot: calls, tokens, cost and time of what is left on each lane, each with a 95% interval, and the
share of answers that failed, were refused or were cut.

Pure functions from what items used to values. Their text: pilot_text.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from statistics import NormalDist, fmean, median
from typing import Any

import numpy as np
from msgspec import Struct, structs, to_builtins

from ....engine.call import WEB
from ....engine.lanes.growth import GrownIn, grown_in
from ....engine.pairs import Reason, failures_of
from ....metrics.statistics.distributions import LEVEL, t_quantile
from ....metrics.statistics.shares import share_interval
from ..door.expected import Missing, Remainder
from ..running.cost_bound import in_flight_under_limit
from ..running.sending import at_once_in
from ..running.stop_reasons import ending_as_json, failures_as_json
from .pilot import ItemUse, Pilot, Stratum

Rng = np.random.Generator
# Fixed, so that the same answers always give the same intervals.
SEED = 5_150_623
_COSTS = {"input_cost": 1.0, "output_cost": 1.0}
# How often the latencies of a run are drawn.
_DRAWS = 200
# The amounts that grow with a prompt's characters, where these are known.
_BY_CHARS = {"input", "input_cost"}


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


class Minutes(Figure, frozen=True):
    """The time that the rest takes: the largest of its bounds. `bound_by`: requests, tokens or concurrency of the
    `lane`, or items whose calls follow each other; None: nothing is left."""

    bound_by: str | None = None
    lane: str | None = None


class PilotFigures(Struct, frozen=True, kw_only=True):
    """The estimates for one model, or for all where an item takes several calls. None in place of a figure: there is
    no estimate, or no price.

    The pilot had `items` of the run's `of`; `pending` ones did not run to their end, `whole` ones did without a
    failure, and of `measured` ones the tokens of all answers are known. `left`: the items still to send, to which
    `lanes`, `cost` and `minutes` belong. Of their lines some `failed`, were `refused` or cut.
    """

    models: tuple[str, ...]
    items: int
    of: int
    pending: int
    whole: int
    measured: int
    sent: int
    from_cache: int
    spent: float | None
    left: int
    lanes: tuple[LaneFigures, ...] | None
    unpriced: tuple[str, ...]
    cost: Figure | None
    minutes: Minutes | None
    failed: Share
    refused: Share
    truncated: Share
    failures: dict[str, tuple[int, Reason | None]]


class _Rest:
    """What is left to send, estimated for each amount of each lane together, so that their sums have intervals too."""

    def __init__(self, strata: Iterable[tuple[Sequence[ItemUse], Remainder]]) -> None:
        self._strata = [(items, left) for items, left in strata if left.prompts > 0]

    def of(self, lanes: Container[str], weights: Mapping[str, float]) -> Figure:
        """Returns the weighted sum of amounts of some lanes, with Student's t interval over items. What is left is a
        random draw too: if that is little, this is most of what is unsure. A sample without the longest answers has too
        low a mean and too small a spread, so the upper end is moved by the items' skewness (Johnson's correction)."""
        value, variance, skewness, freedom = 0.0, 0.0, 0.0, math.inf
        for items, left in self._strata:
            plain, by_chars, sizes = np.array([_weighed(item, lanes, weights, left) for item in items]).T
            number, size = len(items), left.prompts if left.chars is None else left.chars
            ratio = by_chars.sum() / sizes.sum()
            value += float(left.prompts * plain.mean() + size * ratio)
            each = left.prompts * (plain - plain.mean()) + size * (by_chars - ratio * sizes) / sizes.mean()
            variance += float(each @ each) / max(1, number * (number - 1)) * (1 + number / left.prompts)
            skewness += float((each**3).mean()) * (number**-2 - left.prompts**-2)
            freedom = min(freedom, number - 1)
        if not freedom:
            return Figure(value, None)
        if not variance:
            return Figure(value, (value, value))
        t = _t(freedom)
        half, moved = t * math.sqrt(variance), max(0.0, skewness / variance * (1 + 2 * t * t) / 6)
        return Figure(value, (max(0.0, value - half), value + half + moved))


_t = cache(partial(t_quantile, LEVEL))


def _weighed(
    item: ItemUse, lanes: Container[str], weights: Mapping[str, float], left: Remainder
) -> tuple[float, float, int]:
    """Returns an item's weighted amounts, those that grow with its prompt's characters apart, and its size, by which
    these are divided: the characters, where those left are known."""
    uses = [use for lane, use in item.lanes.items() if lane in lanes]
    sums = {name: weight * sum(getattr(use, name) for use in uses) for name, weight in weights.items()}
    by_chars = sum(sums[name] for name in sums.keys() & _BY_CHARS)
    size = 1 if left.chars is None else sum(use.chars for use in item.lanes.values()) or 1
    return sum(sums.values()) - by_chars, by_chars, size


def figures_of(pilot: Pilot, missing: Missing) -> list[PilotFigures]:
    """Returns the estimates of each model, or of all together where an item takes several calls. `missing`: the calls
    left to send, where an item is one."""
    if not pilot.is_of_calls:
        return [_figures(pilot.strata, pilot, missing, pilot.run.lanes)]
    models: dict[str, list[Stratum]] = {}
    for stratum in pilot.strata:
        models.setdefault(stratum.pairs[0].model, []).append(stratum)
    return [_figures(strata, pilot, missing, (model,)) for model, strata in models.items()]


def as_json(pilot: Pilot, figures: Sequence[PilotFigures]) -> dict[str, Any]:
    """Returns how a pilot ended, and its estimates, for programs."""
    return {
        "exit_code": pilot.exit_code,
        **ending_as_json(pilot.end),
        "maybe_billed_pending": pilot.end.maybe_billed,
        "estimates": [{**to_builtins(each), "failures": failures_as_json(each.failures)} for each in figures],
    }


def _figures(strata: Sequence[Stratum], pilot: Pilot, missing: Missing, run_lanes: tuple[str, ...]) -> PilotFigures:
    run, rng = pilot.run, np.random.default_rng(SEED)
    prices = run.settings.price_table()
    left = [_left(stratum, pilot, missing) for stratum in strata]
    measured = [[item for item in stratum.whole if item.is_measured] for stratum in strata]
    items = list(chain.from_iterable(measured))
    used = dict.fromkeys(lane for item in items for lane in item.lanes)
    lanes = tuple(dict.fromkeys([*run_lanes, *used]))
    unpriced = tuple(lane for lane in lanes if lane in used and lane != WEB and prices.get(lane) is None)
    is_known = all(items or not rest.prompts for items, rest in zip(measured, left, strict=True))
    rest = _Rest(zip(measured, left, strict=True)) if is_known else None
    chosen = len(pilot.few.items) * len(strata)
    ended = [each for stratum in strata for each in stratum.ended]
    answered, failed = sum(each.answered for each in ended), sum(each.failures for each in ended)
    return PilotFigures(
        models=tuple(dict.fromkeys(pair.model for stratum in strata for pair in stratum.pairs)),
        items=chosen,
        of=len(run.items) * len(strata),
        pending=chosen - sum(len(stratum.done) for stratum in strata),
        whole=sum(len(stratum.whole) for stratum in strata),
        measured=len(items),
        sent=sum(stratum.sent for stratum in strata),
        from_cache=sum(stratum.from_cache for stratum in strata),
        spent=sum(each.paid for each in strata) if any(prices.get(lane) is not None for lane in lanes) else None,
        left=sum(each.prompts for each in left),
        lanes=None if rest is None else tuple(_lane(lane, rest, is_priced=lane not in unpriced) for lane in lanes),
        unpriced=unpriced,
        cost=None if rest is None or unpriced else rest.of(lanes, _COSTS),
        minutes=None if rest is None else _minutes(rest, strata, lanes, pilot, rng),
        failed=_share(failed, failed + answered),
        refused=_share(sum(each.refused for each in ended), answered),
        truncated=_share(sum(each.truncated for each in ended), answered),
        failures=failures_of(ended),
    )


def _left(stratum: Stratum, pilot: Pilot, missing: Missing) -> Remainder:
    """Returns the items still to send. Where the cache was searched, that has left out what the pilot answered."""
    whole = stratum.whole
    if not pilot.is_of_calls:
        return Remainder(len(pilot.run.items) - len(whole), None)
    left, cached = missing[stratum.pairs[0]]
    if cached is not None or left.chars is None:
        return left
    chars = sum(use.chars for item in whole for use in item.lanes.values())
    return Remainder(left.prompts - len(whole), left.chars - chars)


def _lane(lane: str, rest: _Rest, *, is_priced: bool) -> LaneFigures:
    calls, read, written = (rest.of((lane,), {amount: 1.0}) for amount in ("calls", "input", "output"))
    return LaneFigures(lane, calls, read, written, rest.of((lane,), _COSTS) if is_priced else None)


def _minutes(rest: _Rest, strata: Sequence[Stratum], lanes: Sequence[str], pilot: Pilot, rng: Rng) -> Minutes | None:
    """Returns the time that the rest needs: the largest bound of all lanes, by requests, tokens and calls in flight,
    and of the items that run at once, whose calls follow each other. None: there is none, since nothing was sent and no
    quota is known, or no item was timed."""
    all_calls = rest.of(lanes, {"calls": 1.0})
    if not all_calls.estimate:
        return Minutes(all_calls.estimate, all_calls.ci95)
    bounds: list[Minutes] = []
    for lane in lanes:
        latencies = [ms / 1_000 for stratum in strata for ms in stratum.latencies.get(lane, ())]
        bounds += _bounds_of(lane, rest, latencies, pilot, rng)
    if not pilot.is_of_calls:
        (stratum,) = strata
        if not (seconds := stratum.seconds):
            return None
        # While the first items reach a lane, and while the last ones end, it has less to do than it could.
        edge = median(seconds) / 60 / 2
        bounds = [_later(bound, edge) if bound.estimate else bound for bound in bounds]
        items = (len(pilot.run.items) - len(stratum.whole)) * len(stratum.pairs)
        figure = _side_by_side(seconds, items, at_once_in(pilot.run), rng)
        bounds.append(Minutes(figure.estimate, figure.ci95, f"{pilot.noun}s whose calls follow each other"))
    if not bounds:
        return None
    slowest = max(bounds, key=lambda bound: bound.estimate)
    intervals = [bound.ci95 for bound in bounds if bound.ci95 is not None]
    is_known = len(intervals) == len(bounds)
    interval = (max(low for low, _ in intervals), max(high for _, high in intervals)) if is_known else None
    return structs.replace(slowest, ci95=interval)


def _bounds_of(lane: str, rest: _Rest, latencies: Sequence[float], pilot: Pilot, rng: Rng) -> Iterator[Minutes]:
    """Yields the times that one lane's quotas and its calls in flight allow. `latencies` are in seconds."""
    settings, calls = pilot.run.settings, rest.of((lane,), {"calls": 1.0}).estimate
    quota = pilot.quotas.get(lane) or settings.quota_of(lane)
    # A call that is under way takes its longest answer from the quota; what it did not use is given back then.
    longest, output = pilot.run.max_tokens.get(lane), rest.of((lane,), {"output": 1.0}).estimate
    unused = 0.0 if longest is None or not calls else max(0.0, longest - output / calls)
    held = unused * min(1.0, fmean(latencies) / 60) if latencies else 0.0
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
        bearable = (row["in_flight"] for row in in_flight_under_limit(pilot.run) if row["lane"] == lane)
        at_once = min(settings.concurrency_of(lane), *bearable, math.inf)
        begins = grown_in(calls, at_once) if quota.is_unknown else GrownIn(0.0, 0.0)
        figure = _side_by_side(latencies, max(1.0, calls - begins.calls), at_once, rng)
        minutes = Minutes(figure.estimate, figure.ci95, "concurrency", lane)
        yield _later(minutes, begins.latencies * fmean(latencies) / 60)


def _side_by_side(seconds: Sequence[float], count: float, at_once: float, rng: Rng) -> Figure:
    """Returns the minutes that `count` things take of which `at_once` run at a time, each begun as another ends, where
    some took these seconds: all places are taken until the last things run, whose longest ends it.

    How long that takes is the median of the longest of so many, if logarithms are normal, since a small sample rarely
    holds the longest ones; at most twice the longest one there is. The interval is of samples drawn anew.
    """
    logs, number = np.log(np.maximum(np.sort(seconds), 1e-6)), max(1, round(count))
    places = max(1, min(round(at_once), number))
    samples = rng.choice(logs, (_DRAWS, len(logs)))
    deviations = NormalDist().inv_cdf(0.5 ** (1 / places))
    longest = np.exp(np.minimum(samples.mean(axis=1) + deviations * samples.std(axis=1), logs[-1] + math.log(2)))
    ends = longest + (number / places - 1) * np.exp(samples).mean(axis=1)
    low, middle, high = (float(each) / 60 for each in np.quantile(ends, (0.025, 0.5, 0.975)))
    return Figure(middle, None if len(logs) < 2 else (low, high))


def _share(count: int, of: int) -> Share:
    return Share(count, of, share_interval(count, of) if of else None)


def _later(minutes: Minutes, by: float) -> Minutes:
    interval = None if minutes.ci95 is None else (minutes.ci95[0] + by, minutes.ci95[1] + by)
    return structs.replace(minutes, estimate=minutes.estimate + by, ci95=interval)
