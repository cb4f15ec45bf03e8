"""Forecasts the prompts, tokens, cost and time of a run, before any call is sent or after the calls of its pilot.

Assumes four characters a token, and answers between one token and their limit; prints each assumption beside its
figure. Reads the grid, the settings, the price table and, if asked, the cache; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, chars_of
from ...engine.fault import LocalFault
from ...engine.key import key_of
from ...engine.runs.pairs import Pair
from ...engine.store.cache import Cache
from ...format import dollars, rough_minutes, span_text
from ...report.text import table
from ...wiring import Settings, access_to, keyless_endpoint_to
from ..evaluation import pilot_figures
from ..evaluation.pilot import Pilot
from ..evaluation.pilot_figures import Remainder, Terms
from ..evaluation.preparation import PreparedRun
from .grid import calls, total_chars
from .work import millstone_of

_COLUMNS = ("model", "prompts", "cached", "input tokens", "output tokens", "cost", "time under its quota")


class _UnsentPrompts(Struct):
    """The prompts that a pair still has to be sent, and their characters. `cached`: how many more the cache answers
    (None: not looked up)."""

    prompts: int
    chars: int
    cached: int | None = None


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True, pilot: Pilot | None = None) -> dict[str, Any]:
    """Returns one run's figures as plain values. Tokens, dollars and minutes are those of the prompts that the cache
    does not answer; with a pilot, of those that it left."""
    missing = _missing(prepared) if looks_into_cache and prepared.settings.mode != "live" else None
    if missing is None:
        work = millstone_of(prepared)
        whole_grid = _UnsentPrompts(work.items, total_chars(work.grid))
        missing = dict.fromkeys(prepared.work.pairs(), whole_grid)
    models = [_of_model(prepared, model, _of_all_temperatures(model, missing)) for model in prepared.work.lanes]
    if pilot is not None:
        left = {pair: _left(missing[pair], pilot, pair) for pair in missing}
        for model in models:
            terms = _terms(prepared, model["model"])
            model["pilot"] = pilot_figures.figures(model["model"], pilot, left, terms)
    costs = [model["cost"] for model in models]
    whole = None if None in costs else [sum(low for low, _ in costs), sum(high for _, high in costs)]
    return {
        "folder": None if prepared.out.name == "-" else str(prepared.out),
        "dataset": prepared.dataset,
        "prompts": sum(model["prompts"] for model in models),
        "models": models,
        "cost": whole,
        "prices_of": prepared.settings.price_table().oldest_date(prepared.work.lanes),
        "pilot": None if pilot is None else pilot_figures.ending(pilot),
        "assumptions": {"tokens_per_character": TOKENS_PER_CHAR, "output_tokens_unset": OUTPUT_FIRST},
    }


def _missing(prepared: PreparedRun) -> dict[Pair, _UnsentPrompts] | None:
    """Returns each pair's prompts that the cache does not answer; None if there is no cache."""
    settings, work = prepared.settings, millstone_of(prepared)
    try:
        cache = Cache(settings.cache_folder(), read_only=True)
    except LocalFault:
        return None
    found = {pair: _UnsentPrompts(0, 0, 0) for pair in prepared.work.pairs()}
    try:
        for pair, missing in found.items():
            model, temperature = pair
            endpoint = keyless_endpoint_to(access_to(model, settings))
            for call in calls(work.grid, model, temperature, work.asked.max_tokens_of(model)):
                if cache.get(key_of(endpoint.encode(call), call.trial)) is not None:
                    missing.cached = (missing.cached or 0) + 1
                else:
                    missing.prompts += 1
                    missing.chars += len(call.input)
    finally:
        cache.close()
    return found


def _of_all_temperatures(model: str, missing: Mapping[Pair, _UnsentPrompts]) -> _UnsentPrompts:
    own = [each for pair, each in missing.items() if pair.model == model]
    cached = [each.cached for each in own if each.cached is not None]
    return _UnsentPrompts(
        sum(each.prompts for each in own), sum(each.chars for each in own), sum(cached) if cached else None
    )


def _left(missing: _UnsentPrompts, pilot: Pilot, pair: Pair) -> Remainder:
    """Returns the calls that remain after the pilot. If the cache was searched, `missing` already excludes the pilot's
    answers."""
    if missing.cached is not None:
        return Remainder(missing.prompts, missing.chars)
    answered = [chars_of(outcome.call) for outcome in pilot.outcomes[pair] if outcome.reply is not None]
    return Remainder(missing.prompts - len(answered), missing.chars - sum(answered))


def _terms(prepared: PreparedRun, model: str) -> Terms:
    settings = prepared.settings
    return Terms(settings.quota_of(model), settings.concurrency_of(model), settings.price_table().get(model))


def _of_model(prepared: PreparedRun, model: str, missing: _UnsentPrompts) -> dict[str, Any]:
    settings = prepared.settings
    quota, price = settings.quota_of(model), settings.price_table().get(model)
    prompts = missing.prompts
    tokens = round(missing.chars * TOKENS_PER_CHAR)
    limit = millstone_of(prepared).asked.max_tokens_of(model)
    longest = _longest_answer(settings, model, limit)
    outputs = (prompts, None if longest is None else prompts * longest)
    # Tokens are reserved before they are known, with max_tokens in full if it is sent, and corrected afterwards.
    minutes = [quota.minutes(prompts, tokens, output) for output in outputs if output is not None]
    costs = None if price is None else [price.of(tokens, output) for output in outputs if output is not None]
    return {
        "model": model,
        "prompts": prompts + (missing.cached or 0),
        "cached": missing.cached,
        "input_tokens": tokens,
        "output_tokens": list(outputs),
        "max_tokens": limit,
        "thinks": settings.facts_of(model).thinks,
        "output_tokens_most": longest,
        "price": None if price is None else {"input": price.input, "output": price.output},
        "cost": None if longest is None else costs,
        "rpm": quota.rpm,
        "tpm": quota.tpm,
        "itpm": quota.itpm,
        "otpm": quota.otpm,
        "minutes": None if longest is None or None in minutes else minutes,
        "pilot": None,
    }


def _longest_answer(settings: Settings, model: str, limit: int | None) -> int | None:
    """Returns the tokens of an answer that the upper figures assume. A model that does not think is assumed to stop by
    itself, one that thinks to use all it can; None if that is not known."""
    if limit is not None:
        return limit
    return settings.output_max(model) if settings.facts_of(model).thinks else OUTPUT_FIRST


def forecast_text(found: Mapping[str, Any]) -> str:
    rows = [_COLUMNS, *(_row(model) for model in found["models"])]
    lines = [table(rows), "", f"{found['prompts']:,} prompts in all; data set {found['dataset']['path']}"]
    labels = found["dataset"]["labels"]
    if labels["differ"] or labels["unread"]:
        lines.append(labels["summary"])
    if found["cost"] is not None:
        low, high = found["cost"]
        lines.append(f"cost: ${low:,.2f} to ${high:,.2f}, if nothing has to be sent twice")
    unpriced = [model["model"] for model in found["models"] if model["price"] is None]
    if unpriced:
        lines.append(
            f'without a price: {", ".join(unpriced)}; give one under [prices."{unpriced[0]}"] in --config FILE'
        )
    if len(unpriced) < len(found["models"]):
        listed = f"listed on {found['prices_of']} or later" if found["prices_of"] else "given in the configuration"
        lines.append(f"prices as {listed}: check them")
    quotas = ("rpm", "tpm", "itpm", "otpm")
    unquoted = [model["model"] for model in found["models"] if all(model[name] is None for name in quotas)]
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
    piloted = [model for model in found["models"] if model["pilot"] is not None]
    for model in piloted:
        lines += ["", pilot_figures.tell(model["model"], model["pilot"])]
    if any(model["pilot"]["pending"] < model["pilot"]["calls"] for model in piloted):
        lines += ["", pilot_figures.MEANING]
    if found["pilot"] is not None and found["pilot"]["maybe_billed_pending"]:
        unsure = found["pilot"]["maybe_billed_pending"]
        lines.append(f"{unsure:,} attempts for calls that the pilot left unanswered may have been billed all the same")
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
