"""Forecasts the prompts, tokens, cost and time of a run, before any call is sent or after the calls of its pilot.

Assumes four characters a token, and answers between one token and their limit; prints each assumption beside its
figure. Reads the grid, the settings, the price table and, if asked, the cache; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR
from ...engine.call import Call
from ...engine.runs.pairs import Pair
from ...format import dollars, rough_minutes, span_text
from ...report.text import table
from ...wiring import Settings
from ..evaluation.forecast import (
    CONDITION,
    forecast_of,
    lanes_under_test,
    longest_answer,
    look_up,
    pilot_lines,
    price_lines,
)
from ..evaluation.preparation import PreparedRun
from ..evaluation.work import Remainder
from .grid import calls, total_chars
from .sweep import highest
from .work import millstone_of

if TYPE_CHECKING:
    from ..evaluation.pilot import Pilot

_COLUMNS = ("model", "prompts", "cached", "input tokens", "output tokens", "cost", "time under its quota")
_QUOTAS = ("rpm", "tpm", "itpm", "otpm")


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True, pilot: Pilot | None = None) -> dict[str, Any]:
    """Returns one run's figures as plain values. Tokens, dollars and minutes are those of the prompts that the cache
    does not answer; with a pilot, of those that it left."""
    work = millstone_of(prepared)

    def calls_of(pair: Pair) -> Iterator[Call]:
        return calls(work.grid, pair, work.asked.max_tokens_of(pair))

    missing = look_up(
        work.pairs(),
        calls_of,
        prepared.settings,
        looks_into_cache=looks_into_cache,
        whole=lambda: Remainder(work.items, total_chars(work.grid)),
    )
    limits = {pair: work.asked.max_tokens_of(pair) for pair in work.asked.pairs}
    found = forecast_of(prepared, lanes_under_test(prepared, missing, limits), missing, pilot)
    models = [_of_model(prepared.settings, row, limits) for row in found["lanes"]]
    return {
        "folder": found["folder"],
        "dataset": prepared.dataset,
        "prompts": sum(model["prompts"] for model in models),
        "models": models,
        **{name: found[name] for name in ("cost", "prices_of", "pilot")},
        "assumptions": {"tokens_per_character": TOKENS_PER_CHAR, "output_tokens_unset": OUTPUT_FIRST},
    }


def _of_model(settings: Settings, row: Mapping[str, Any], limits: Mapping[Pair, int | None]) -> dict[str, Any]:
    """Returns a lane's row as one model's figures. `limits`: the max_tokens of each pair's calls; None: not sent."""
    model = row["lane"]
    quota = settings.quota_of(model)
    own = {pair: limit for pair, limit in limits.items() if pair.model == model}
    longest = [longest_answer(settings, pair, limit) for pair, limit in own.items()]
    return {
        "model": model,
        "prompts": row["calls"][0] + (row["cached"] or 0),
        "cached": row["cached"],
        "input_tokens": row["input_tokens"][0],
        "output_tokens": row["output_tokens"],
        "max_tokens": highest(own.values()),
        "thinks": row["thinks"],
        "output_tokens_most": highest(longest),
        **{name: row[name] for name in ("price", "cost")},
        **{name: getattr(quota, name) for name in _QUOTAS},
        **{name: row[name] for name in ("minutes", "pilot")},
    }


def forecast_text(found: Mapping[str, Any]) -> str:
    rows = [_COLUMNS, *(_row(model) for model in found["models"])]
    lines = [table(rows), "", f"{found['prompts']:,} prompts in all; data set {found['dataset']['path']}"]
    labels = found["dataset"]["labels"]
    if labels["differ"] or labels["unread"]:
        lines.append(labels["summary"])
    if found["cost"] is not None:
        low, high = found["cost"]
        lines.append(f"cost: ${low:,.2f} to ${high:,.2f}, {CONDITION}")
    lines += price_lines({model["model"]: model["price"] for model in found["models"]}, found["prices_of"])
    unquoted = [model["model"] for model in found["models"] if all(model[name] is None for name in _QUOTAS)]
    if unquoted:
        lines.append(f"no quota declared: {', '.join(unquoted)}; --rpm and --tpm give the time")
    lines += _told_of_thinking(found["models"])
    unset = [model for model in found["models"] if model["max_tokens"] is None and not model["thinks"]]
    most = "at most max_tokens"
    if unset:
        most += f" (where that is not sent, {found['assumptions']['output_tokens_unset']} are assumed)"
    if any(model["cached"] is None for model in found["models"]):
        lines.append("the cache was not looked into: what it holds costs nothing")
    lines.append(f"assumed: a token is 4 characters of a prompt; an answer has at least 1 token, {most}")
    lines += pilot_lines({model["model"]: model["pilot"] for model in found["models"]}, found["pilot"])
    return "\n".join(lines)


def _told_of_thinking(models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each model that thinks before it answers and for which no max_tokens is sent."""
    for model in models:
        if model["max_tokens"] is not None or not model["thinks"]:
            continue
        name, longest = model["model"], model["output_tokens_most"]
        thinks = f"{name} thinks before it answers and is sent no max_tokens"
        if longest is None:
            yield f'{thinks}: how long is not known; give max_output under [models."{name}"] in --config FILE'
        else:
            yield f"{thinks}: the upper figures take {longest:,} tokens an answer; --pilot N measures how many it takes"


def _row(model: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = model["output_tokens"]
    cost, minutes = model["cost"], model["minutes"]
    return (
        model["model"],
        f"{model['prompts']:,}",
        "-" if model["cached"] is None else f"{model['cached']:,}",
        f"{model['input_tokens']:,}",
        f"{low:,} or more" if high is None else f"{low:,} to {high:,}",
        "no price" if model["price"] is None else "not known" if cost is None else span_text(cost, dollars),
        "no quota" if minutes is None else span_text(minutes, rough_minutes),
    )
