"""Estimates from a pilot of whole items: calls, tokens, cost and time of what is left, each with a 95% interval, for
each lane.

The unit is an item over all pairs, since its calls depend on each other. Pure functions from costs to values and lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...engine.call import WEB
from ...format import decimal_text, dollars, rough_minutes
from ...metrics.statistics.ratio import RatioSample, Totals, totals
from ...metrics.statistics.shares import share_interval
from ...report.text import table
from ...wiring import Settings
from .item_pilot import ItemPilot, ItemSpent, LaneSpent
from .pilot_figures import SEED

_AMOUNTS = ("calls", "input", "output", "cost")
_COLUMNS = ("lane", "calls", "input tokens", "output tokens", "cost")
MEANING = (
    "in brackets: 95% intervals, by a bootstrap over the pilot's {noun}s, of shares the exact ones; the figures are "
    "those of a run of which every step left is answered at its first sending; time is what quotas allow, and an "
    "answer has to wait for those before it besides"
)


def figures(pilot: ItemPilot, settings: Settings) -> dict[str, Any]:
    """Returns a pilot's estimates as plain values; None where there is no estimate."""
    chosen, whole = pilot.chosen, pilot.whole
    left = chosen.of - len(whole)
    lanes = list(dict.fromkeys([*chosen.run.work.lanes, *(lane for item in whole for lane in item.lanes)]))
    found = _totals(whole, lanes, left) if whole or not left else None
    prices = settings.price_table()
    # Pages cost nothing.
    used = {lane for item in whole for lane in item.lanes} - {WEB}
    unpriced = [lane for lane in lanes if lane in used and prices.get(lane) is None]
    unknown = {*unpriced, *pilot.unmeasured}
    rows = [_lane(lane, at, found, is_priced=lane not in unknown) for at, lane in enumerate(lanes)]
    cost = None
    if found is not None and not unknown:
        cost = _told(found, _weights(len(lanes), {(at, "cost"): 1.0 for at in range(len(lanes))}))
    failed = sum(pilot.failures.values())
    stop = next(iter(pilot.stops), None)
    return {
        "noun": chosen.noun,
        "line": chosen.run.work.item,
        "items": chosen.items,
        "whole": len(whole),
        "of": chosen.of,
        "sent": pilot.sent,
        "from_cache": pilot.from_cache,
        "spent": pilot.paid,
        "left": left,
        "lanes": rows if found is not None else [],
        "cost": cost,
        "cost_with_pilot": None if cost is None or pilot.paid is None else _moved(cost, pilot.paid),
        "unpriced": unpriced,
        "unmeasured": sorted(pilot.unmeasured),
        "minutes": None if found is None else _minutes(found, lanes, settings),
        "failed": _share(failed, failed + pilot.lines),
        "refused": _share(pilot.refused, pilot.lines),
        "truncated": _share(pilot.truncated, pilot.lines),
        "failures": {kind: {"steps": count, "detail": pilot.details[kind]} for kind, count in pilot.failures.items()},
        "stop": None if stop is None else {"lane": stop.lane, "reason": stop.reason, "detail": stop.detail},
        "exit_code": pilot.exit_code,
        "signal": pilot.signal,
        "maybe_billed_pending": pilot.maybe_billed_pending,
    }


def _totals(whole: Sequence[ItemSpent], lanes: Sequence[str], left: int) -> Totals:
    """Returns resampled totals of every amount of every lane, drawn together, so that their sums have intervals too."""
    none = LaneSpent()
    rows = [[float(getattr(item.lanes.get(lane, none), what)) for lane in lanes for what in _AMOUNTS] for item in whole]
    amounts = np.array(rows, dtype=np.float64).reshape(-1, len(lanes) * len(_AMOUNTS))
    sizes_left = np.full(amounts.shape[1], float(left))
    return totals(RatioSample(amounts, np.ones_like(amounts), left, sizes_left), np.random.default_rng(SEED))


def _weights(lanes: int, of: Mapping[tuple[int, str], float]) -> list[float]:
    return [of.get((at, what), 0.0) for at in range(lanes) for what in _AMOUNTS]


def _lane(name: str, at: int, found: Totals | None, *, is_priced: bool) -> dict[str, Any]:
    if found is None:
        return {}
    count = len(found.values) // len(_AMOUNTS)
    told = {what: _told(found, _weights(count, {(at, what): 1.0})) for what in _AMOUNTS}
    return {
        "lane": name,
        "calls": told["calls"],
        "input_tokens": told["input"],
        "output_tokens": told["output"],
        "cost": told["cost"] if is_priced else None,
    }


def _told(found: Totals, weights: Sequence[float]) -> dict[str, Any]:
    estimate = found.of(weights)
    return {
        "estimate": estimate.value,
        "ci95": None if estimate.interval is None else list(estimate.interval),
    }


def _moved(figure: Mapping[str, Any], by: float) -> dict[str, Any]:
    interval = figure["ci95"]
    return {"estimate": figure["estimate"] + by, "ci95": None if interval is None else [end + by for end in interval]}


def _minutes(found: Totals, lanes: Sequence[str], settings: Settings) -> dict[str, Any] | None:
    """Returns the minutes that the slowest lane needs under its quota, with an interval; None if no lane declares a
    quota."""
    bounds: dict[str, dict[str, Any]] = {}
    for at, name in enumerate(lanes):
        quota = settings.quota_of(name)
        limits: tuple[tuple[float | None, tuple[str, ...]], ...] = (
            (quota.rpm, ("calls",)),
            (quota.tpm, ("input", "output")),
            (quota.itpm, ("input",)),
            (quota.otpm, ("output",)),
        )
        for most, whats in limits:
            if most is None:
                continue
            told = _told(found, _weights(len(lanes), {(at, what): 1 / most for what in whats}))
            if name not in bounds or told["estimate"] > bounds[name]["estimate"]:
                bounds[name] = told
    if not bounds:
        return None
    slowest = max(bounds, key=lambda name: float(bounds[name]["estimate"]))
    return {**bounds[slowest], "bound_by": slowest}


def _share(count: int, of: int) -> dict[str, Any]:
    return {"steps": count, "of": of, "ci95": list(share_interval(count, of)) if of else None}


def tell(found: Mapping[str, Any]) -> str:
    """Returns a pilot's estimates as lines for people."""
    noun, paid = found["noun"], "" if found["spent"] is None else f"; it cost {dollars(found['spent'])}"
    lines = [
        f"pilot: {found['items']:,} of {found['of']:,} {noun}s, {found['sent']:,} calls sent, {found['from_cache']:,} "
        f"from the cache{paid}"
    ]
    if (lacking := found["items"] - found["whole"]) > 0:
        why = "" if found["stop"] is None else f": {' '.join(found['stop']['detail'].split())}"
        lines.append(f"  not whole      {lacking:,} of them{why}")
    if not found["lanes"]:
        lines.append(f"  no estimate    no {noun} ran to its end")
    else:
        lines += _estimate_lines(found)
    for name, told in (("failed", "failed"), ("refused", "refused"), ("truncated", "cut short")):
        share = found[name]
        if share["of"]:
            low, high = share["ci95"]
            steps = f"{share['steps']:,} of {share['of']:,} {found['line']}s"
            lines.append(f"  {told:13}  {steps} ({low:.1%} to {high:.1%})")
    for kind, failure in found["failures"].items():
        lines.append(f"  {kind:13}  {failure['steps']:,}, the first: {failure['detail']}")
    if found["maybe_billed_pending"]:
        lines.append(f"  maybe billed   attempts without an answer: {found['maybe_billed_pending']:,}")
    if found["lanes"]:
        lines += ["", MEANING.format(noun=noun)]
    return "\n".join(lines)


def _estimate_lines(found: Mapping[str, Any]) -> list[str]:
    lines = [f"  still to send  {found['left']:,} {found['noun']}s"]
    rows = [_COLUMNS, *(_cells(row, found) for row in found["lanes"])]
    lines += [f"  {line}" for line in table(rows).splitlines()]
    if found["cost"] is not None:
        all_in = found["cost_with_pilot"]
        paid = "" if all_in is None else f"; with the pilot {_with_interval(all_in, dollars)}"
        lines.append(f"  cost           {_with_interval(found['cost'], dollars)}{paid}")
    elif found["unpriced"]:
        lines.append(f"  cost           not known: no price for {', '.join(found['unpriced'])}")
    else:
        lines.append(f"  cost           not known: {', '.join(found['unmeasured'])} reports no tokens")
    minutes = found["minutes"]
    if minutes is not None:
        lines.append(
            f"  time           at least {_with_interval(minutes, rough_minutes)}, as {minutes['bound_by']} allows"
        )
    return lines


def _cells(row: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    is_model = row["input_tokens"]["estimate"] > 0
    unknown = "no price" if row["lane"] in found["unpriced"] else "not known"
    return (
        row["lane"],
        _with_interval(row["calls"], decimal_text),
        _with_interval(row["input_tokens"], decimal_text) if is_model else "-",
        _with_interval(row["output_tokens"], decimal_text) if is_model else "-",
        unknown if row["cost"] is None else _with_interval(row["cost"], dollars),
    )


def _with_interval(figure: Mapping[str, Any], write: Any) -> str:
    if figure["ci95"] is None:
        return f"{write(figure['estimate'])} (one alone has no interval)"
    low, high = map(write, figure["ci95"])
    return f"{write(figure['estimate'])}" if low == high else f"{write(figure['estimate'])} ({low} to {high})"
