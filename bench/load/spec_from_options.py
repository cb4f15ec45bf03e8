"""Builds a load test's specification from the options of `millstream load`, or raises one line of error.

Owns all checks made before anything is sent, except for which options go together. Sends and writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from ...configuration.configuration import Configuration, check_prices, read_configuration, settings_for
from ...configuration.declared_options import given_in, key_of, made_from
from ...configuration.errors import UsageError
from ...configuration.options import SendingOptions
from ...providers.search.access import is_search
from ...wiring import Settings, accesses_to
from ...wiring.lane_names import unused_lanes
from ..made_prompts.prompts import CallParameters
from . import prompt_sources
from .arrivals import Arrivals, ClosedLoop, OpenLoop, Process, Replay, Stretch, at_rate
from .folder import check_unused
from .goal import Search, parse_goal, parse_promise
from .meter import Promise
from .option_kinds import TRACE
from .options import LoadOptions
from .plan import Limits, LoadPlan
from .spec import CallSource, LoadSpec
from .traces import ReplayTrace, TraceExcerpt, read_trace

RATE, DURATION_S = 1.0, 60.0
_Parsed = TypeVar("_Parsed")


def spec_from(parsed: argparse.Namespace) -> LoadSpec:
    """Returns the checked specification. With `--plan`, no API key and no folder is needed."""
    options, sending = made_from(LoadOptions, parsed), parsed.sending
    if sending.mode not in (None, "live"):
        raise UsageError(
            f"--mode: expected live, or nothing, got {sending.mode}: a load test sends every call and stores no answer"
        )
    models = tuple(dict.fromkeys(options.model))
    if not options.plan:
        if not options.out:
            raise UsageError("--out: expected the test's folder, got none")
        check_unused(Path(options.out))
    search = _search(options)
    promise = None if options.promise is None else _parsed("--promise", parse_promise, options.promise)
    _check_streaming(options, search, promise)
    configuration = read_configuration(sending.config)
    alone = structs.replace(sending, ray=None, workers=None)
    settings = _settings(options, alone, models, configuration)
    trace = None if options.replay is None else _trace(options, options.replay)
    chosen = _chosen(options, trace)
    plan = _plan(options, sending.max_cost, search, trace, promise)
    flags = given_in(parsed, LoadOptions.__struct_fields__) | sending.given()
    notes = [*_notes_on_lanes(sending, models, configuration), *([chosen.told] if chosen.told else [])]
    return LoadSpec(
        models=models,
        settings=settings,
        plan=plan,
        calls=_source(options, chosen, trace, plan.seed),
        out=Path(options.out or "-").absolute(),
        search=search,
        cluster=sending.ray,
        workers=sending.workers,
        said=_by_name(options, flags, models, plan),
        notes=(*notes, *_notes_on_trace(options, trace), *unused_lanes([settings])),
    )


def _source(
    options: LoadOptions, chosen: prompt_sources.PromptSource, trace: ReplayTrace | None, seed: int
) -> CallSource:
    is_traced = trace is not None and options.max_tokens == TRACE
    wanted = CallParameters(
        max_tokens=None if isinstance(options.max_tokens, str) else options.max_tokens,
        temperature=options.temperature,
        stream=not options.whole,
    )
    if trace is None or not is_traced:
        return prompt_sources.source_of(chosen, wanted, seed)
    # A trace has 0 tokens for a failed call, but an answer must be allowed at least 1.
    return prompt_sources.source_of(chosen, wanted, seed, tuple(max(1, tokens) for tokens in trace.outputs))


def _notes_on_trace(options: LoadOptions, trace: ReplayTrace | None) -> list[str]:
    if trace is None:
        return []
    notes = [f"{options.replay}: {trace.told}"]
    if trace.has_tokens and TRACE not in (options.prompt_tokens, options.max_tokens):
        notes.append(f"{options.replay} tells tokens too: --prompt-tokens trace and --max-tokens trace use them")
    return notes


def _settings(
    options: LoadOptions, sending: SendingOptions, models: tuple[str, ...], configuration: Configuration
) -> Settings:
    """Returns the engine's settings. Lanes keep only quotas given here. The cost cap belongs to the test, so that
    reaching it ends the test and does not stop the lane."""
    for model in models:
        if is_search(model):
            raise UsageError(f"{model}: expected a model, got a search engine: a load test asks models")
    settings = structs.replace(settings_for(models, sending, configuration), needs_keys=not options.plan, measures=True)
    for model in models:
        accesses_to(model, settings)
    check_prices(models, settings)
    concurrency = sending.concurrency or max(options.in_flight or 0, options.most_in_flight)
    lanes = tuple(
        structs.replace(
            settings.lane_of(model), rpm=sending.rpm, tpm=sending.tpm, itpm=None, otpm=None, concurrency=concurrency
        )
        for model in models
    )
    return structs.replace(settings, lanes=lanes, mode="live", max_cost=None)


def _notes_on_lanes(sending: SendingOptions, models: tuple[str, ...], configuration: Configuration) -> list[str]:
    notes = []
    for lane in configuration.lanes:
        declared = [
            f"{name} {amount:,.10g}"
            for name, amount in (("rpm", lane.rpm), ("tpm", lane.tpm), ("itpm", lane.itpm), ("otpm", lane.otpm))
            if amount is not None and (name not in ("rpm", "tpm") or getattr(sending, name) is None)
        ]
        if lane.model in models and declared:
            notes.append(
                f"{', '.join(declared)} that {sending.config} declares for {lane.model} is not kept in a load test: "
                f"--rpm and --tpm are"
            )
    return notes


def _search(options: LoadOptions) -> Search | None:
    if options.goal is None:
        return None
    if options.from_ > options.to:
        raise UsageError(f"--from: expected no more than --to ({options.to:,g} calls/s), got {options.from_:,g}")
    return Search(_parsed("--goal", parse_goal, options.goal), options.from_, options.to, options.precision)


def _parsed(flag: str, parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


def _check_streaming(options: LoadOptions, search: Search | None, promise: Promise | None) -> None:
    """Raises UsageError if a goal or a promise (None: not given) needs times of tokens although answers are not
    streamed."""
    if not options.whole:
        return
    if search is not None and search.goal.of != "latency":
        raise UsageError(
            f"--goal: expected latency with --whole, got {search.goal.of}, which only streamed answers have"
        )
    if promise is not None and (promise.first_token_s is not None or promise.token_s is not None):
        raise UsageError("--promise: expected latency alone with --whole, got what only streamed answers have")


def _trace(options: LoadOptions, file: str) -> ReplayTrace:
    seconds = None if options.duration is None else options.duration * options.speed
    part = TraceExcerpt(
        seconds=seconds,
        calls=options.calls,
        inputs=options.prompt_tokens == TRACE,
        outputs=options.max_tokens == TRACE,
    )
    return read_trace(Path(file).expanduser(), part)


def _chosen(options: LoadOptions, trace: ReplayTrace | None) -> prompt_sources.PromptSource:
    if options.prompts is not None:
        return prompt_sources.of_file(Path(options.prompts).expanduser(), is_exact=options.exact_prompts)
    if options.dataset is not None:
        return prompt_sources.of_dataset(options.dataset, is_exact=options.exact_prompts)
    if options.prompt_tokens == TRACE and trace is not None:
        return prompt_sources.of_trace(trace.inputs)
    return prompt_sources.of_tokens(options.prompt_tokens)


def _plan(
    options: LoadOptions,
    max_cost: float | None,
    search: Search | None,
    trace: ReplayTrace | None,
    promise: Promise | None,
) -> LoadPlan:
    arrivals = _arrivals(options, search, trace)
    limits = Limits(
        duration_s=_duration_s(options, arrivals),
        calls=options.calls if search is None else search.goal.calls_least,
        max_cost=max_cost,
        in_flight=max(options.in_flight or 0, options.most_in_flight),
        drain_s=options.drain,
    )
    if options.cool_down and search is not None:
        raise UsageError("--cool-down: expected a test whose end is known, got a search for a goal: leave it out")
    try:
        return LoadPlan(arrivals, limits, options.warm_up, options.cool_down, promise, options.seed)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _duration_s(options: LoadOptions, arrivals: Arrivals) -> float | None:
    """Returns the given duration in seconds; a minute if no option ends the test; None if another one does."""
    if options.duration is not None or options.goal is not None or options.calls is not None:
        return options.duration
    is_endless = isinstance(arrivals, ClosedLoop) or (
        isinstance(arrivals, OpenLoop) and arrivals.seconds == float("inf")
    )
    return DURATION_S if is_endless else None


def _arrivals(options: LoadOptions, search: Search | None, trace: ReplayTrace | None) -> Arrivals:
    if trace is not None:
        return Replay(trace.stamps, options.speed, trace.lasts)
    if options.in_flight is not None:
        return ClosedLoop(options.in_flight)
    process, burstiness = _process(options)
    if options.ramp is not None:
        low, high = options.ramp
        return OpenLoop((Stretch(options.duration or DURATION_S, low, high),), process, burstiness)
    if options.steps is not None:
        return OpenLoop(tuple(Stretch(options.step_time, rate) for rate in options.steps), process, burstiness)
    return at_rate(options.rate or (RATE if search is None else search.low), process, burstiness)


def _process(options: LoadOptions) -> tuple[Process, float]:
    if options.burstiness is not None:
        return "gamma", options.burstiness
    return options.arrivals or "poisson", 1.0


def _by_name(options: LoadOptions, flags: Mapping[str, Any], models: tuple[str, ...], plan: LoadPlan) -> dict[str, Any]:
    """Returns the given options by name for `load.json`, with the defaults that were used."""
    process, burstiness = _process(options)
    meant: dict[str, Any] = {"seed": plan.seed, "streamed": not options.whole}
    if not isinstance(plan.arrivals, Replay | ClosedLoop):
        meant["arrivals"] = process
        if process == "gamma":
            meant["burstiness"] = burstiness
    if isinstance(plan.arrivals, OpenLoop) and options.ramp is None and options.steps is None and options.goal is None:
        meant["rate"] = options.rate or RATE
    if options.steps is not None:
        meant["step-time"] = options.step_time
    if options.replay is not None:
        meant["speed"] = options.speed
    if options.goal is not None:
        meant |= {"from": options.from_, "to": options.to, "precision": options.precision}
    elif plan.ends_s is not None:
        meant["duration"] = plan.ends_s
    if options.prompts is None and options.dataset is None:
        meant["prompt-tokens"] = options.prompt_tokens
    meant["max-tokens"] = options.max_tokens
    meant["drain"] = plan.limits.drain_s
    meant["most-in-flight"] = plan.limits.in_flight
    hidden = ("model", "out", "plan", "no_report")
    return {"models": list(models), **{key_of(name): flags[name] for name in flags if name not in hidden}, **meant}
