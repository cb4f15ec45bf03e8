"""The figures of a load test for the terminal: a short table for each model, after a warning if the client was the
bottleneck.

Pure: from the structs of `load.json` to a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from ...format import by_kind, clock, dollars, figure_text, measured_time, rate_text
from ...metrics.load.load_json import LoadFigures, LoadPart, ModelFigures, Percentile, Times
from ...report.text import inert, printable, table
from .folder import CALLS, LOAD
from .report.sentences import ended, findings, verdict, warnings
from .report.series import LoadSeries, LoadTest, has_several_rates, series_of

SHOWN = (50.0, 90.0, 99.0, 99.9)
# The columns of a sentence.
_WIDTH = 96
# Rows with a time of at least this are in seconds.
_SECONDS_FROM_S = 10.0


def tell(load: LoadFigures, folder: Path | None = None) -> str:
    """Returns the summary as lines for a terminal. `folder` is where the files are (None: not mentioned)."""
    blocks = [list(_client(load))]
    for series in series_of([LoadTest("", load)]):
        blocks.append([printable(series.model), *(f"  {line}".rstrip() for line in _model(series))])
    gone = [printable(each) for each in load.unmeasured]
    blocks.append([f"measured for {clock(load.seconds)}; ended: {ended(load)}", *gone, *_files(load, folder)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _files(load: LoadFigures, folder: Path | None) -> Iterator[str]:
    if load.spent is not None and len(load.models) > 1:
        yield f"{dollars(load.spent)} spent in all"
    if load.spent is not None and load.spent_unsure:
        yield (
            f"{dollars(load.spent - load.spent_unsure)} of that is surely spent; {dollars(load.spent_unsure)} may have "
            f"been billed for calls without a whole answer"
        )
    if folder is not None:
        yield f"{folder / LOAD}, {folder / CALLS}"


def _client(load: LoadFigures) -> Iterator[str]:
    if load.client.is_bottleneck:
        yield "THE CLIENT WAS THE BOTTLENECK: these figures are not the server's alone"
        for reason in load.client.reasons:
            yield f"  {reason}"
        yield "  ask for a lower rate, or measure from a machine with less to do"
    for each in load.client.workers:
        late, lag, offset, error = map(
            measured_time, (each.late_p99_s, each.lag_p99_s, each.clock_offset_s, each.clock_error_s)
        )
        yield (
            f"{printable(each.name)}: {each.calls:,} calls, p99 begun {late} late, loop lag {lag}, "
            f"{each.cpu_peak:.0%} of a core at most; clock {offset} ahead (± {error})"
        )


def _model(series: LoadSeries) -> Iterator[str]:
    # Figures of all calls at different rates describe none of the rates.
    model, has_rates = series.of, has_several_rates(series)
    yield _counted(model, has_rates=has_rates)
    if model.answered:
        yield ""
        yield from _steps(model.steps) if has_rates else _times(model)
        yield ""
    yield from _errors(model)
    if model.input_tokens or model.output_tokens:
        each = "" if has_rates else f"{model.output_tokens_per_s:,.4g} tokens/s out; "
        yield f"tokens   {each}{model.input_tokens:,} in, {model.output_tokens:,} out"
    if model.goodput is not None and not has_rates:
        share = model.goodput / model.rate if model.rate else 0.0
        yield f"goodput  {rate_text(model.goodput)}/s kept the promise ({share:.1%} of the calls)"
    if model.spent is not None:
        yield f"cost     {dollars(model.spent)}"
    if model.goal is not None and model.answered:
        yield from wrap(f"goal     {inert(model.goal.goal)}: {inert(verdict(series))}", _WIDTH)
    for sentence in (*findings(series), *warnings(series)):
        yield from wrap(inert(sentence), _WIDTH)


def _counted(model: ModelFigures, *, has_rates: bool) -> str:
    planned = model.steps[0].rate if len(model.steps) == 1 else None
    rate = "" if has_rates else f", {rate_text(model.rate)}/s"
    rate += "" if planned is None else f" of {rate_text(planned)}/s asked"
    beyond = f" (of {model.begun:,} sent)" if model.begun != model.calls else ""
    answered = f"{model.answered:,} of {model.calls:,} measured calls answered{beyond}"
    return f"{answered}{rate}, at most {model.in_flight_max:,} in flight"


def _times(model: ModelFigures) -> Iterator[str]:
    """Yields the lines of a table with a row for each kind of time in a suitable unit, intervals beneath the
    figures."""
    rows = [["", *(f"p{percent:g}" for percent in SHOWN)]]
    for name, times in (
        ("latency", model.latency),
        ("from sent", model.service),
        ("first token", model.first_token),
        ("per token", model.token),
        ("gap", model.gap),
    ):
        if times.count:
            rows += _rows(name, times)
    yield from table(rows).split("\n")


def _rows(name: str, times: Times) -> list[list[str]]:
    percentiles = [times.at(percent) for percent in SHOWN]
    is_seconds = max((each.value_s for each in percentiles if each is not None), default=0.0) >= _SECONDS_FROM_S
    unit, factor = ("s", 1.0) if is_seconds else ("ms", 1000.0)
    return [
        [f"{name}, {unit}", *(_figure(each, factor) for each in percentiles)],
        ["", *(_interval(each, factor) for each in percentiles)],
    ]


def _figure(percentile: Percentile | None, factor: float) -> str:
    return "-" if percentile is None else figure_text(factor * percentile.value_s)


def _interval(percentile: Percentile | None, factor: float) -> str:
    """Returns an interval; an end that too few calls determine is shown as `…`."""
    if percentile is None:
        return ""
    low, high = ("" if each is None else figure_text(factor * each) for each in (percentile.low_s, percentile.high_s))
    return f"{low or '…'}–{high or '…'}"


def _errors(model: ModelFigures) -> Iterator[str]:
    if not model.calls:
        return
    share = model.error_share
    kinds = f": {by_kind(model.errors)}" if model.errors else ""
    yield f"errors   {share.value:.2%} ({share.low:.2%} to {share.high:.2%}){kinds}"


def _steps(steps: Sequence[LoadPart]) -> Iterator[str]:
    """Yields the lines of a table with a row for each rate; a column that no rate has is left out."""
    heads = ("asked", "sent", "p50", "p99", "ttft p99", "tpot p50", "itl p99", "errors", "promise", "")
    rows = [_step(step) for step in steps]
    columns = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    lines = [[heads[at] for at in columns], *([row[at] or "-" * bool(heads[at]) for at in columns] for row in rows)]
    lean = (columns.index(len(heads) - 1),) if len(heads) - 1 in columns else ()
    yield from table(lines, lean=lean).split("\n")


def _step(step: LoadPart) -> list[str]:
    remarks = [*([step.standing] if step.standing else []), *(["client-bound"] if step.is_client_bound else [])]
    return [
        "" if step.rate is None else f"{rate_text(step.rate)}/s",
        f"{rate_text(step.achieved)}/s",
        _quick(step.latency, 50.0),
        _quick(step.latency, 99.0),
        _quick(step.first_token, 99.0),
        _quick(step.token, 50.0),
        _quick(step.gap, 99.0),
        f"{step.errors / step.calls:.2%}" if step.calls else "",
        "" if step.kept is None or not step.calls else f"{step.kept / step.calls:.1%}",
        ", ".join(remarks),
    ]


def _quick(times: Times | None, percent: float) -> str:
    """Returns a percentile; empty if there is none."""
    percentile = None if times is None else times.at(percent)
    return "" if percentile is None else measured_time(percentile.value_s)
