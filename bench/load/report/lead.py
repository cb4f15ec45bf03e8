"""The sentences that a page of load tests begins with: what was tested, up to which rate goal and promise were kept,
when, for how long and at what cost.

Pure: from the structs of `load.json` to plain texts without markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ....format import measured_time, rate_text
from ....metrics.load.load_json import LoadFigures
from ....report.labels import named_list, one_line
from .rate_table import rate_rows
from .sentences import ends_left_out, plan_line
from .series import LoadSeries, has_several_rates


def tested(load: LoadFigures) -> str:
    """Returns a sentence on the models and the plan of a test."""
    models = [one_line(model, 80) for model in load.models]
    return f"{named_list(models)} {'was' if len(models) == 1 else 'were'} tested with {plan_line(load)}."


def verdicts(every: Sequence[LoadSeries]) -> Iterator[str]:
    """Yields for each series of a test a sentence on the highest rate at which its goal or promise was kept."""
    for each in every:
        whose = f"{one_line(each.model, 80)}: " if len(every) > 1 else ""
        yield f"{whose}{_verdict(each)}"


def facts_of(load: LoadFigures) -> str:
    """Returns when and how long it was measured, the cost, and the version of this program."""
    began = datetime.fromtimestamp(load.began, UTC).strftime("%Y-%m-%d %H:%M UTC")
    models = named_list([one_line(model, 80) for model in load.models])
    cost = f"cost not known: no price for {models}" if load.spent is None else f"cost ${load.spent:,.4f}"
    length = f"measured for {measured_time(load.seconds)}{ends_left_out(load)}"
    return f"Begun {began}; {length}; {cost}; millstream {one_line(load.millstream, 40)}."


def _verdict(series: LoadSeries) -> str:
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
    rows = rate_rows([series])
    if all(row.part.kept is None for row in rows):
        return "No goal and no promise was set."
    promise = f"the promise “{one_line(str(series.load.test.get('promise', '')), 120)}”"
    whole = [row.part for row in rows if row.part.calls and row.part.kept == row.part.calls]
    if not has_several_rates(series):
        return f"Every call kept {promise}." if whole else f"Not every call kept {promise}."
    if not whole:
        return f"At no rate did every call keep {promise}."
    top = max(part.rate or 0.0 for part in whole)
    return f"The highest rate at which every call kept {promise} is {rate_text(top)} calls a second."
