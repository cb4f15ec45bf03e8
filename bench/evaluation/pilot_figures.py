"""Estimates from a pilot: tokens, cost and time of what is left, each with a 95% interval, and the share of calls that
failed, were refused or were cut.

Pure functions from outcomes to values. Their text: pilot_text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from ...engine.attempts.estimate import chars_of
from ...engine.call import Outcome
from ...engine.runs.pairs import Pair
from ...metrics.statistics.ratio import Estimate, RatioSample, Totals, totals
from ...metrics.statistics.shares import share_interval
from ...wiring import Settings
from .work import Remainder

if TYPE_CHECKING:
    from .pilot import Pilot

# Fixed, so that the same answers always give the same intervals.
SEED = 5_150_623


class _TokenSample(Struct, frozen=True):
    """The characters and tokens of one answered call."""

    chars: int
    input: int
    output: int


def figures(model: str, pilot: Pilot, left: Mapping[Pair, Remainder], settings: Settings) -> dict[str, Any]:
    """Returns the estimates for one model as plain values; None where there is no estimate."""
    rng = np.random.default_rng(SEED)
    pairs = [pair for pair in pilot.chosen if pair.model == model]
    outcomes = [outcome for pair in pairs for outcome in pilot.outcomes[pair]]
    seen = {pair: _seen(pilot.outcomes[pair]) for pair in pairs}
    every = [one for pair in pairs for one in seen[pair]]
    to_send = sum(left[pair].prompts for pair in pairs)
    tokens = _tokens(seen, left, rng)
    price = settings.price_table().get(model)
    cost = spent = None
    if price is not None:
        spent = sum(outcome.cost or 0.0 for outcome in outcomes)
        if tokens is not None:
            cost = tokens.of((price.factor * price.input / 1e6, price.factor * price.output / 1e6))
    latencies = sorted(outcome.latency_ms for outcome in outcomes if outcome.latency_ms is not None)
    return {
        **_counts(outcomes, sum(len(pilot.chosen[pair]) for pair in pairs)),
        "stop": next(
            ({"reason": stop.reason, "detail": stop.detail} for stop in pilot.stops if stop.lane == model), None
        ),
        "usages": len(every),
        "spent": spent,
        "left": to_send,
        "tokens_per_character": _ratio(sum(one.input for one in every), sum(one.chars for one in every)),
        "output_tokens_each": _ratio(sum(one.output for one in every), len(every)),
        "latency_ms": _ratio(sum(latencies), len(latencies)),
        "input_tokens": None if tokens is None else _told(tokens.of((1, 0))),
        "output_tokens": None if tokens is None else _told(tokens.of((0, 1))),
        "cost": None if cost is None else _told(cost),
        "cost_with_pilot": None if cost is None or spent is None else _told(cost, spent),
        "minutes": _minutes(model, settings, to_send, tokens, _busy_ms(latencies, to_send, rng)),
    }


def _seen(outcomes: Sequence[Outcome]) -> list[_TokenSample]:
    found = []
    for outcome in outcomes:
        usage = None if outcome.reply is None else outcome.reply.usage
        if usage is not None and usage.input is not None and usage.output is not None:
            found.append(_TokenSample(max(1, chars_of(outcome.call)), usage.input, usage.output))
    # Answers arrive in any order, and what is drawn from them must not depend on it.
    return sorted(found, key=lambda one: (one.chars, one.input, one.output))


def _counts(outcomes: Sequence[Outcome], calls: int) -> dict[str, Any]:
    replies = [outcome.reply for outcome in outcomes if outcome.reply is not None]
    failures: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        if outcome.failure is not None:
            first = {"calls": 0, "detail": " ".join(outcome.failure.detail.split())}
            failures.setdefault(outcome.failure.kind, first)["calls"] += 1
    return {
        "calls": calls,
        "sent": sum(outcome.attempts > 0 for outcome in outcomes),
        "from_cache": sum(outcome.cached for outcome in outcomes),
        "pending": calls - len(outcomes),
        "answered": len(replies),
        "failed": _share(len(outcomes) - len(replies), len(outcomes)),
        "refused": _share(sum(reply.refused for reply in replies), len(replies)),
        "truncated": _share(sum(reply.truncated for reply in replies), len(replies)),
        "failures": failures,
        "maybe_billed": sum(outcome.maybe_billed for outcome in outcomes),
    }


def _share(count: int, of: int) -> dict[str, Any]:
    return {"calls": count, "of": of, "ci95": list(share_interval(count, of)) if of else None}


def _ratio(amount: float, size: float) -> float | None:
    return amount / size if size else None


def _tokens(
    seen: Mapping[Pair, Sequence[_TokenSample]], left: Mapping[Pair, Remainder], rng: np.random.Generator
) -> Totals | None:
    """Returns resampled input and output tokens of what is left, each temperature from its own answers; None if one has
    no answers."""
    found = []
    for pair, answers in seen.items():
        rest = left[pair]
        if rest.prompts and not answers:
            return None
        amounts = np.array([(one.input, one.output) for one in answers], dtype=np.float64).reshape(-1, 2)
        sizes = np.array([(one.chars, 1) for one in answers], dtype=np.float64).reshape(-1, 2)
        sizes_left = np.array((rest.chars, rest.prompts), dtype=np.float64)
        found.append(totals(RatioSample(amounts, sizes, rest.prompts, sizes_left), rng))
    return reduce(add, found)


def _busy_ms(latencies: Sequence[float], to_send: int, rng: np.random.Generator) -> Totals | None:
    """Returns the milliseconds that all calls left take one after the other; None if no latency is known."""
    if not latencies or not to_send:
        return None
    amounts = np.array(latencies, dtype=np.float64).reshape(-1, 1)
    return totals(RatioSample(amounts, np.ones_like(amounts), to_send, np.array([float(to_send)])), rng)


def _minutes(
    model: str, settings: Settings, to_send: int, tokens: Totals | None, busy_ms: Totals | None
) -> dict[str, Any] | None:
    """Returns the minutes that the run needs, with an interval: the largest of its bounds by requests, tokens and
    concurrency; None if it has no bound, or one in tokens, of which the pilot measured none."""
    if not to_send:
        return {"estimate": 0.0, "ci95": [0.0, 0.0], "bound_by": None}
    bounds: dict[str, dict[str, Any]] = {}
    quota = settings.quota_of(model)
    if quota.rpm is not None:
        minutes = to_send / quota.rpm
        bounds["requests"] = {"estimate": minutes, "ci95": [minutes, minutes]}
    for name, most, share in (
        ("tokens", quota.tpm, (1, 1)),
        ("input tokens", quota.itpm, (1, 0)),
        ("output tokens", quota.otpm, (0, 1)),
    ):
        if most is not None:
            if tokens is None:
                return None
            bounds[name] = _told(tokens.of((share[0] / most, share[1] / most)))
    if busy_ms is not None:
        bounds["concurrency"] = _told(busy_ms.of((1 / 60_000 / min(settings.concurrency_of(model), to_send),)))
    if not bounds:
        return None
    slowest = max(bounds, key=lambda name: float(bounds[name]["estimate"]))
    intervals = [bound["ci95"] for bound in bounds.values() if bound["ci95"] is not None]
    is_known = len(intervals) == len(bounds)
    interval = [max(low for low, _ in intervals), max(high for _, high in intervals)] if is_known else None
    return {"estimate": bounds[slowest]["estimate"], "ci95": interval, "bound_by": slowest}


def _told(found: Estimate, more: float = 0.0) -> dict[str, Any]:
    return {
        "estimate": found.value + more,
        "ci95": None if found.interval is None else [end + more for end in found.interval],
    }
