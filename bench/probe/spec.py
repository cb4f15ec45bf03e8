"""The specification of a probe, built from options and configuration: its settings, its caps, how its models are
reached.

Owns which options are refused, and what is announced before anything is sent. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from ...configuration.configuration import Configuration, read_configuration, settings_for
from ...configuration.errors import UsageError
from ...configuration.options import SendingOptions
from ...engine.lane import Lane
from ...format import count_text
from ...providers.models import WINDOW, prompt_tokens
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import Settings, accesses_to
from .calls import Bounds
from .caps import IN_FLIGHT, MINUTES, TIMEOUT_S, TOKENS_A_CALL
from .lanes_file import Way
from .provider import Costs, output_of


class ProbeSpec(Struct, frozen=True, kw_only=True):
    """Which models are probed, one after the other, and within which `bounds`. `settings`: of an engine that measures:
    no retry, and no lane holds a call back; `costs`: the most dollars that a call can cost; `ways`: where each model is
    reached, and with which API key."""

    models: tuple[str, ...]
    settings: Settings
    bounds: Bounds
    costs: Costs
    ways: Mapping[str, Way]


def spec_of(models: tuple[str, ...], sending: SendingOptions, max_calls: int) -> ProbeSpec:
    """Returns the checked specification. Raises UsageError or ConfigurationError if a probe can't follow the
    options."""
    if sending.mode not in (None, "live"):
        raise UsageError(f"probe: expected --mode live, got {sending.mode}: a probe sends every call and keeps none")
    wrong = next((model for model in models if is_search(model) or is_page(model)), None)
    if wrong is not None:
        raise UsageError(f"probe: expected models, got {wrong}: only models' quotas can be probed")
    configuration = read_configuration(sending.config)
    settings = _settings(models, sending, configuration)
    costs = Costs(settings)
    unpriced = [model for model in models if costs.price(model) is None]
    if unpriced and sending.max_cost is not None:
        raise UsageError(
            f"model {unpriced[0]!r} has no price, so --max-cost can't be kept: give it one under "
            f"[prices.{unpriced[0]!r}] in a --config file, or leave --max-cost out: then only --max-calls limits it"
        )
    longest = min(
        prompt_tokens(settings.facts_of(model).window or WINDOW, output_of(model, settings)) for model in models
    )
    options: dict[str, Any] = {
        "max_cost": sending.max_cost,
        "in_flight": sending.concurrency,
        "requests": None if sending.rpm is None else int(sending.rpm),
        "tokens": sending.tpm,
        "tokens_a_call": min(TOKENS_A_CALL, longest),
    }
    bounds = Bounds(max_calls, **{name: value for name, value in options.items() if value is not None})
    ways = {}
    for model in models:
        [access] = accesses_to(model, settings)
        keys = configuration.key_variables.get(model, ())
        ways[model] = Way(access.target.base_url, access.variable, keys_left=max(0, len(keys) - 1))
    return ProbeSpec(models=models, settings=settings, bounds=bounds, costs=costs, ways=ways)


def _settings(models: tuple[str, ...], sending: SendingOptions, configuration: Configuration) -> Settings:
    """Returns settings whose lanes hold no call back, each with the first of its API keys."""
    plain = SendingOptions(base_url=sending.base_url, cache=sending.cache, mode="live")
    settings = settings_for(models, plain, configuration)
    in_flight = IN_FLIGHT if sending.concurrency is None else sending.concurrency
    timeout_s = TIMEOUT_S if sending.timeout is None else sending.timeout
    return structs.replace(
        settings,
        measures=True,
        budget_name="probe",
        lanes=tuple(Lane(model, concurrency=in_flight, timeout_s=timeout_s) for model in models),
        key_variables={model: names[:1] for model, names in configuration.key_variables.items() if model in models},
    )


def announced(spec: ProbeSpec) -> Iterator[str]:
    """Yields the lines printed before a probe: the most calls and dollars, the usual minutes, and for each model its
    address, API key and the most that a call can cost."""
    unpriced = [model for model in spec.models if spec.costs.price(model) is None]
    dearest = max(spec.costs.worst_cost(model, spec.bounds.tokens_a_call) for model in spec.models)
    cost = min(spec.bounds.max_cost, spec.bounds.max_calls * dearest)
    spends = f" and spends at most ${cost:,.4f}" if len(unpriced) < len(spec.models) else ""
    yield f"a probe sends at most {count_text(spec.bounds.max_calls, 'call')}{spends}; most end far below"
    yield f"it takes {MINUTES} minutes a model as a rule; slow answers make it longer"
    for model in spec.models:
        way, costs = spec.ways[model], spec.costs
        parts = ["it has no price, so its cost is unknown and limited only by --max-calls"]
        if model not in unpriced:
            least, most = costs.worst_cost(model, 1), costs.worst_cost(model, spec.bounds.tokens_a_call)
            largest = f"the largest of {spec.bounds.tokens_a_call:,} tokens ${most:.6f}"
            parts = [f"a call costs at most ${least:.6f}", largest]
        if way.keys_left:
            parts.append(f"with the first of its {way.keys_left + 1} keys, the one in {way.key}")
        yield f"{model} at {way.address}: {', '.join(parts)}"
