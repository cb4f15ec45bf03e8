"""Builds a load test's specification from the options of `millstream load`, or raises one line of error.

Owns the defaults and all checks made before anything is sent. Sends and writes nothing.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ...configuration.configuration import Configuration, read_configuration, settings_for
from ...configuration.errors import UsageError
from ...configuration.options import SendingOptions
from ...providers.search.access import is_search
from ...wiring import Settings, accesses_to
from ...wiring.lane_names import unused_lanes
from ..evaluation.preparation import check_prices
from ..made_prompts.prompts import CallParameters
from . import prompt_sources
from .arrivals import Arrivals, ClosedLoop, OpenLoop, Process, Replay, Stretch, at_rate
from .folder import check_unused
from .goal import TIME_NAMES, Goal, Search, parse_goal
from .meter import Promise
from .option_conflicts import check_conflicts
from .option_kinds import TRACE
from .plan import Limits, LoadPlan
from .spec import CallSource, LoadSpec
from .traces import ReplayTrace, TraceExcerpt, read_trace

RATE, DURATION_S, STEP_S = 1.0, 60.0, 30.0
LOWEST, HIGHEST, PRECISION = 1.0, 1_000.0, 0.05
PROMPT_TOKENS, MAX_TOKENS = "200", 64
IN_FLIGHT, DRAIN_S = 2_000, 60.0
_PROMISED = "|".join(name for name, of in TIME_NAMES.items() if of != "gap")
_TERM = re.compile(rf"({_PROMISED})\s*<=?\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s)", re.IGNORECASE)
_EXAMPLE = "first token <= 1 s, latency <= 10 s, token <= 50 ms"


class CheckedSpec(Struct, frozen=True):
    """A specification, and the notes that the user should read before the test begins."""

    spec: LoadSpec
    notes: tuple[str, ...]


class _Goal(Struct, frozen=True):
    goal: Goal
    search: Search


def spec_from(options: argparse.Namespace) -> CheckedSpec:
    """Returns the checked specification. With `--plan`, no API key and no folder is needed."""
    models = tuple(dict.fromkeys(options.model))
    check_conflicts(options)
    if not options.plan:
        if not options.out:
            raise UsageError("--out: expected the test's folder, got none")
        check_unused(Path(options.out))
    sought = _sought(options)
    promise = None if options.promise is None else parse_promise(options.promise)
    _check_streaming(options, sought, promise)
    configuration = read_configuration(options.sending.config)
    settings = _settings(options, models, configuration)
    trace = None if options.replay is None else _trace(options)
    chosen = _chosen(options, trace)
    plan = _plan(options, sought, trace, promise)
    process, burstiness = _process(options)
    spec = LoadSpec(
        models=models,
        settings=settings,
        plan=plan,
        calls=_source(options, chosen, trace, plan.seed),
        out=Path(options.out or "-").absolute(),
        process=process,
        burstiness=burstiness,
        goal=None if sought is None else sought.goal,
        goal_text=options.goal or "",
        search=None if sought is None else sought.search,
        said=_said(options, models, plan),
    )
    notes = [*_notes_on_lanes(options.sending, models, configuration), *([chosen.told] if chosen.told else [])]
    return CheckedSpec(spec, (*notes, *_notes_on_trace(options, trace), *unused_lanes([settings])))


def _source(
    options: argparse.Namespace, chosen: prompt_sources.PromptSource, trace: ReplayTrace | None, seed: int
) -> CallSource:
    is_traced = trace is not None and options.max_tokens == TRACE
    wanted = CallParameters(
        max_tokens=None if is_traced else options.max_tokens or MAX_TOKENS,
        temperature=options.temperature,
        stream=not options.whole,
    )
    if trace is None or not is_traced:
        return prompt_sources.source_of(chosen, wanted, seed)
    # A trace has 0 tokens for a failed call, but an answer must be allowed at least 1.
    return prompt_sources.source_of(chosen, wanted, seed, tuple(max(1, tokens) for tokens in trace.outputs))


def _notes_on_trace(options: argparse.Namespace, trace: ReplayTrace | None) -> list[str]:
    if trace is None:
        return []
    notes = [f"{options.replay}: {trace.told}"]
    if trace.has_tokens and TRACE not in (options.prompt_tokens, options.max_tokens):
        notes.append(f"{options.replay} tells tokens too: --prompt-tokens trace and --max-tokens trace use them")
    return notes


def _settings(options: argparse.Namespace, models: tuple[str, ...], configuration: Configuration) -> Settings:
    """Returns the engine's settings. Lanes keep only quotas given here. The cost cap belongs to the test, so that
    reaching it ends the test and does not stop the lane."""
    for model in models:
        if is_search(model):
            raise UsageError(f"{model}: expected a model, got a search engine: a load test asks models")
    sending: SendingOptions = options.sending
    settings = structs.replace(settings_for(models, sending, configuration), needs_keys=not options.plan, measures=True)
    for model in models:
        accesses_to(model, settings)
    check_prices(models, settings)
    concurrency = sending.concurrency or max(options.in_flight or 0, options.most_in_flight or IN_FLIGHT)
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


def _sought(options: argparse.Namespace) -> _Goal | None:
    if options.goal is None:
        return None
    lowest, highest = options.lowest or LOWEST, options.highest or HIGHEST
    if lowest > highest:
        raise UsageError(f"--from: expected no more than --to ({highest:,g} calls/s), got {lowest:,g}")
    try:
        goal = parse_goal(options.goal)
    except ValueError as error:
        raise UsageError(f"--goal: {error}") from error
    return _Goal(goal, Search(lowest, highest, options.precision or PRECISION))


def parse_promise(text: str) -> Promise:
    """Returns the promise written as `first token <= 1 s, latency <= 10 s, token <= 50 ms`, or with `ttft` and `tpot`;
    each part may be left out. Raises UsageError for any other text."""
    found: dict[str, float] = {}
    for term in re.split(r",| and ", text):
        match = _TERM.fullmatch(" ".join(term.split()))
        if match is None:
            raise UsageError(f'--promise: expected times as "{_EXAMPLE}", got "{_shown(term.strip() or text)}"')
        amount, unit = match[2], match[3].lower()
        name = TIME_NAMES[match[1].lower()]
        if name in found:
            raise UsageError(f"--promise: expected each time once, got {name} twice")
        found[name] = float(amount) / (1000 if unit == "ms" else 1)
        if not found[name] > 0:
            raise UsageError(f"--promise: expected times above 0, got {term.strip()}")
    return Promise(found.get("first token"), found.get("latency"), found.get("token"))


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _check_streaming(options: argparse.Namespace, sought: _Goal | None, promise: Promise | None) -> None:
    """Raises UsageError if a goal or a promise (None: not given) needs times of tokens although answers are not
    streamed."""
    if not options.whole:
        return
    if sought is not None and sought.goal.of != "latency":
        raise UsageError(
            f"--goal: expected latency with --whole, got {sought.goal.of}, which only streamed answers have"
        )
    if promise is not None and (promise.first_token_s is not None or promise.token_s is not None):
        raise UsageError("--promise: expected latency alone with --whole, got what only streamed answers have")


def _trace(options: argparse.Namespace) -> ReplayTrace:
    seconds = None if options.duration is None else options.duration * (options.speed or 1.0)
    part = TraceExcerpt(
        seconds=seconds,
        calls=options.calls,
        inputs=options.prompt_tokens == TRACE,
        outputs=options.max_tokens == TRACE,
    )
    return read_trace(Path(options.replay).expanduser(), part)


def _chosen(options: argparse.Namespace, trace: ReplayTrace | None) -> prompt_sources.PromptSource:
    if options.prompts is not None:
        return prompt_sources.of_file(Path(options.prompts).expanduser(), is_exact=options.exact_prompts)
    if options.dataset is not None:
        return prompt_sources.of_dataset(options.dataset, is_exact=options.exact_prompts)
    if options.prompt_tokens == TRACE and trace is not None:
        return prompt_sources.of_trace(trace.inputs)
    return prompt_sources.of_tokens(options.prompt_tokens or PROMPT_TOKENS)


def _plan(
    options: argparse.Namespace, sought: _Goal | None, trace: ReplayTrace | None, promise: Promise | None
) -> LoadPlan:
    arrivals = _arrivals(options, sought, trace)
    limits = Limits(
        duration_s=_duration_s(options, arrivals),
        calls=sought.goal.calls_least if sought is not None else options.calls,
        max_cost=options.sending.max_cost,
        in_flight=max(options.in_flight or 0, options.most_in_flight or IN_FLIGHT),
        drain_s=DRAIN_S if options.drain is None else options.drain,
    )
    warm_up_s, cool_down_s = options.warm_up or 0.0, options.cool_down or 0.0
    plain = LoadPlan(arrivals, limits, promise=promise, seed=options.seed or 0)
    if cool_down_s and (sought is not None or plain.ends_s is None):
        found = (
            "one that ends with its calls: add --duration" if sought is None else "a search for a goal: leave it out"
        )
        raise UsageError(f"--cool-down: expected a test whose end is known, got {found}")
    if sought is None and plain.ends_s is not None and warm_up_s + cool_down_s >= plain.ends_s > 0:
        raise UsageError(
            f"--warm-up and --cool-down: expected less than the test's {plain.ends_s:g} s together, got "
            f"{warm_up_s + cool_down_s:g} s"
        )
    return structs.replace(plain, warm_up_s=warm_up_s, cool_down_s=cool_down_s)


def _duration_s(options: argparse.Namespace, arrivals: Arrivals) -> float | None:
    """Returns the given duration in seconds; a minute if no option ends the test; None if another one does."""
    given: float | None = options.duration
    if given is not None or options.goal is not None or options.calls is not None:
        return given
    is_endless = isinstance(arrivals, ClosedLoop) or (
        isinstance(arrivals, OpenLoop) and arrivals.seconds == float("inf")
    )
    return DURATION_S if is_endless else None


def _arrivals(options: argparse.Namespace, sought: _Goal | None, trace: ReplayTrace | None) -> Arrivals:
    if trace is not None:
        return Replay(trace.stamps, options.speed or 1.0, trace.lasts)
    if options.in_flight is not None:
        return ClosedLoop(options.in_flight)
    process, burstiness = _process(options)
    if options.ramp is not None:
        low, high = options.ramp
        return OpenLoop((Stretch(options.duration or DURATION_S, low, high),), process, burstiness)
    if options.steps is not None:
        seconds = options.step_time or STEP_S
        return OpenLoop(tuple(Stretch(seconds, rate) for rate in options.steps), process, burstiness)
    return at_rate(options.rate or (RATE if sought is None else sought.search.low), process, burstiness)


def _process(options: argparse.Namespace) -> tuple[Process, float]:
    if options.burstiness is not None:
        return "gamma", options.burstiness
    return options.arrivals or "poisson", 1.0


def _said(options: argparse.Namespace, models: tuple[str, ...], plan: LoadPlan) -> dict[str, Any]:
    """Returns the options by name for `load.json`, with the defaults that were used."""
    names = {"lowest": "from", "highest": "to", "model": "models"}
    hidden = ("plan", "json", "no_progress", "no_report", "out", "sending")
    found = {
        names.get(name, name.replace("_", "-")): value
        for name, value in (vars(options) | options.sending.given()).items()
        if value is not None and value is not False and name not in hidden
    }
    process, burstiness = _process(options)
    meant: dict[str, Any] = {"models": list(models), "seed": plan.seed, "streamed": not options.whole}
    if not isinstance(plan.arrivals, Replay | ClosedLoop):
        meant["arrivals"] = process
        if process == "gamma":
            meant["burstiness"] = burstiness
    if isinstance(plan.arrivals, OpenLoop) and options.ramp is None and options.steps is None and options.goal is None:
        meant["rate"] = options.rate or RATE
    if options.steps is not None:
        meant["step-time"] = options.step_time or STEP_S
    if options.replay is not None:
        meant["speed"] = options.speed or 1.0
    if options.goal is not None:
        meant["from"], meant["to"] = options.lowest or LOWEST, options.highest or HIGHEST
        meant["precision"] = options.precision or PRECISION
    elif plan.ends_s is not None:
        meant["duration"] = plan.ends_s
    if options.prompts is None and options.dataset is None:
        meant["prompt-tokens"] = options.prompt_tokens or PROMPT_TOKENS
    meant["max-tokens"] = options.max_tokens or MAX_TOKENS
    meant["drain"] = plan.limits.drain_s
    meant["most-in-flight"] = plan.limits.in_flight
    return {**found, **meant}
