"""Sentences on load tests, for page and terminal: what was planned, the results, warnings, and what the page omits.

Pure: from the structs of `load.json` to plain texts without markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ....format import measured_time, rate_text
from ....metrics.load.knee import RATES_LEAST, judged
from ....metrics.load.load_json import LoadFigures
from ....metrics.load.unmeasured import answers_of
from ....report.labels import named_list, one_line
from .series import LoadSeries, LoadTest, has_several_rates, parts_of, stepped

_ENDINGS = {
    "duration": "its time was over",
    "calls": "all its calls were sent",
    "cost": "its limit on cost was reached",
    "arrivals": "all calls of the plan were sent",
    "prompts": "there were no more prompts",
    "goal": "the search was over",
    "stopped": "it was stopped",
    "interrupted": "it was interrupted",
    "fault": "a fault on the client's side ended it",
    "error": "a fault on the client's side ended it",
}
_CUT_SHORT = ("cost", "prompts", "stopped", "interrupted", "fault", "error")
_ARRIVALS = {"poisson": "Poisson arrivals", "constant": "even arrivals", "gamma": "arrivals in bursts"}
# A wait of this share of p99, and of a millisecond, is mentioned.
_WAITED = 0.1


def plan_text(load: LoadFigures) -> str:
    """Returns a plan in a few words, such as `rate 5/s for 60 s`."""
    test = load.test
    lasts = f" for {option_text(test['duration'])} s" if "duration" in test else ""
    if "goal" in test:
        return f"goal “{one_line(str(test['goal']), 120)}”"
    if "steps" in test:
        each = f", {option_text(test['step-time'])} s each" if "step-time" in test else ""
        return f"steps {option_text(test['steps'])}/s{each}"
    if "ramp" in test:
        return f"ramp {option_text(test['ramp']).replace(', ', ' to ')}/s{lasts}"
    if "in-flight" in test:
        return f"{option_text(test['in-flight'])} in flight{lasts}"
    if "replay" in test:
        return f"replay of {option_text(test['replay'])}"
    return f"rate {option_text(test['rate'])}/s{lasts}" if "rate" in test else "no rate"


def tested(load: LoadFigures) -> str:
    """Returns a sentence on the models and the plan of a test."""
    models = [one_line(model, 80) for model in load.models]
    process = _ARRIVALS.get(option_text(load.test.get("arrivals")), "")
    were, each = ("was", "") if len(models) == 1 else ("were", " for each model")
    return f"{named_list(models)} {were} tested: {plan_text(load)}{each}{process and f', {process}'}."


def facts_of(load: LoadFigures) -> str:
    """Returns when and how long it was measured, the cost, and the version of this program."""
    began = datetime.fromtimestamp(load.began, UTC).strftime("%Y-%m-%d %H:%M UTC")
    models = named_list([one_line(model, 80) for model in load.models])
    cost = f"cost unknown: no price for {models}" if load.spent is None else f"cost ${load.spent:,.4f}"
    length = f"measured for {measured_time(load.seconds)}{ends_left_out(load)}"
    return f"Begun {began}; {length}; {cost}; millstream {one_line(load.millstream, 40)}."


def verdict(series: LoadSeries) -> str:
    """Returns a sentence on the highest rate at which goal or promise was kept."""
    if not series.of.calls:
        return "No call was measured."
    if not series.of.answered:
        return "No call was answered, so no rate is named."
    goal = series.of.goal
    if goal is not None:
        if goal.kept is not None:
            return f"The highest rate at which the goal was kept is {rate_text(goal.kept)} calls a second."
        if goal.unmeasured:
            return f"The goal was not measured: {one_line(goal.unmeasured)}."
        return "The goal was kept at no rate that was tried."
    parts = parts_of(series)
    if all(part.kept is None for part in parts):
        return "No goal and no promise was set."
    promise = f"the promise “{one_line(str(series.load.test.get('promise', '')), 120)}”"
    whole = [part for part in parts if part.calls and part.kept == part.calls]
    if not has_several_rates(series):
        return f"Every call kept {promise}." if whole else f"Not every call kept {promise}."
    if not whole:
        return f"At no rate did every call keep {promise}."
    top = max(part.rate or 0.0 for part in whole)
    return f"The highest rate at which every call kept {promise} is {rate_text(top)} calls a second."


def findings(series: LoadSeries) -> Iterator[str]:
    """Yields sentences on rates beyond the goal and on the knee; none without answers."""
    goal, knee = series.of.goal, series.of.knee
    if not series.of.answered:
        return
    if goal is not None and (text := " ".join(_goal(series))):
        yield text
    if knee is not None:
        yield f"The knee is at {rate_text(knee.rate)} calls a second: {one_line(knee.why, 500)}."
    elif len({part.rate for part in stepped(series)}) >= RATES_LEAST:
        yield _no_knee(series)


def _no_knee(series: LoadSeries) -> str:
    every = {part.rate for part in stepped(series)}
    sound = {part.rate for part in stepped(series) if not part.is_client_bound}
    if len(sound) < RATES_LEAST:
        return f"No knee: the client was the bottleneck at {len(every - sound)} of {len(every)} rates."
    if not judged(series.of.steps):
        return "No knee: the server did not keep up with the lowest rate either."
    return "No knee: at no rate did the server keep up worse than at the lowest one."


def warnings(series: LoadSeries) -> Iterator[str]:
    """Yields a sentence for each way in which these figures are easily misread."""
    of = series.of
    if "in-flight" in series.load.test and not stepped(series):
        yield (
            "A closed loop slows down with the server: its latencies are those of a client that waits, and say "
            "nothing about calls at a fixed rate."
        )
    if of.held:
        yield (
            f"{of.held:,} calls were due while {of.in_flight_max:,} were in flight, the most that were allowed, and "
            f"waited for a place, up to {measured_time(of.hold_max_s)}. Their latency has that wait in it."
        )
    if of.unsent_held:
        yield f"{of.unsent_held:,} calls that were due were never sent: no place in flight was free."
    if of.unsent_late:
        yield f"{of.unsent_late:,} calls that were due were never sent, since the client's own loop came too late."
    latency, service = of.latency.at(99.0), of.service.at(99.0)
    if latency is not None and service is not None:
        waited_s = latency.value_s - service.value_s
        if waited_s > _WAITED * latency.value_s and waited_s > 0.001:
            held = of.held_by_lane.at(99.0)
            is_lanes = held is not None and held.value_s > waited_s / 2
            yield (
                f"99% of the answers came within {measured_time(service.value_s)} of being sent, and within "
                f"{measured_time(latency.value_s)} of when they were due: times from sending leave out the difference."
                + (" Calls waited for the quota that --rpm or --tpm gives." if is_lanes else "")
            )
    for sentence in answers_of(of):
        yield f"{one_line(sentence, 500)}."


def ended(load: LoadFigures) -> str:
    detail = f": {one_line(load.ending_detail, 500)}" if load.ending_detail else ""
    return f"{_ENDINGS.get(load.ending, one_line(load.ending))}{detail}"


def was_cut_short(load: LoadFigures) -> bool:
    return load.ending in _CUT_SHORT


def left_out(every: Sequence[LoadSeries]) -> Iterator[str]:
    """Yields the reason for each part that the page omits."""
    if not any(each.of.calls for each in every):
        yield "figures of calls, since none was measured"
        return
    if not any(each.of.answered for each in every):
        yield "times, since no call was answered"
    elif not any(each.of.first_token.count for each in every):
        yield "first token, time per token and gaps, since no answer was streamed"
    elif not any(each.of.gap.count for each in every):
        yield "charts of first token, time per token and gaps, since every answer came in one piece: its latency"
    if not any(part.rate for each in every for part in each.of.steps):
        yield "percentiles by rate and the knee, since no rate was asked: a closed loop or a trace has none"
    elif not any(map(has_several_rates, every)):
        yield "percentiles by rate and the knee, since one rate alone was asked"
    if any(each.of.answered for each in every) and not any(each.of.goodput is not None for each in every):
        yield "goodput, since nothing was promised of an answer"
    if not any(each.of.errors for each in every):
        yield "errors by kind, since every call was answered"


def facts(test: LoadTest) -> Iterator[tuple[str, str]]:
    """Yields the names and texts of how a test was measured, beside what its summary says."""
    load = test.load
    yield "Ended", ended(load)
    client = load.client
    yield (
        "Client",
        (
            f"its loop lagged {measured_time(client.lag_p99_s)} at p99; it took {client.cpu_mean:.0%} of a core on "
            f"average, {client.cpu_peak:.0%} at most"
        ),
    )
    for name, value in load.test.items():
        if name not in ("models", "verb") and (text := option_text(value)):
            yield f"--{one_line(name, 40)}", text


def title_of(tests: Sequence[LoadTest]) -> str:
    models = list(dict.fromkeys(model for test in tests for model in test.load.models))
    whose = one_line(models[0], 60) if len(models) == 1 else f"{len(models)} models"
    return f"Load test of {whose}" if len(tests) == 1 else f"{len(tests)} load tests of {whose}"


def _goal(series: LoadSeries) -> Iterator[str]:
    """Yields what lies above the highest rate that kept the goal."""
    goal = series.of.goal
    assert goal is not None
    if goal.missed is not None:
        yield f"{rate_text(goal.missed)} calls a second were not shown to keep the goal."
    if goal.client_at is not None:
        yield f"At {rate_text(goal.client_at)} the client was the bottleneck, so the server may keep up with more."
    elif goal.missed is None and goal.kept is not None and not goal.unmeasured:
        is_cut = was_cut_short(series.load)
        yield "No higher rate was tried to its end." if is_cut else "It was the highest rate to try."


def ends_left_out(load: LoadFigures) -> str:
    """Returns the times of warm-up and cool-down in words; empty if there are none."""
    parts = [
        f"{seconds:.6g} s of {name}"
        for name, seconds in (("warm-up", load.warm_up_s), ("cool-down", load.cool_down_s))
        if seconds
    ]
    return f", besides {' and '.join(parts)}" if parts else ""


def option_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(option_text(each) for each in value[:20]) + (" …" if len(value) > 20 else "")
    return one_line(value, 200) if isinstance(value, str) else ""
