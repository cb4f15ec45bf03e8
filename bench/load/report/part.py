"""The page of load tests and its tables: one test in full, or several side by side.

Owns the order of the sections, which of them are omitted, and the alerts before all. Figures and tables are made
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ....metrics.load.unmeasured import unmeasured
from ....report.escaping import in_html
from ....report.html_tables import table_html
from ....report.labels import one_line
from ....report.page import framed_page
from ....report.sections import PageContents, Section, csv_name, figure_html, remarks_html, table_section
from ....report.standings import facts_html, origins_html
from ....report.table import Figure, Table
from . import sentences, tables
from .charts_rates import by_rate_figure, overlaid_by_rate_figure
from .charts_spectrum import spectrum_figure, streaming_figure
from .charts_time import over_time_figure, overlaid_over_time_figure
from .plans import not_compared
from .rate_table import rates_table
from .series import LoadSeries, LoadTest, has_several_rates, series_of, stepped

_STREAMING = "load-streaming"
# What the columns of the first table mean, by their names.
_COLUMN_NOTES = (
    ("errors", "Errors are calls without an answer, with a 95% interval."),
    ("promise", "A call without an answer has not kept the promise."),
    ("latency_p50", "Latency counts from when a call was due to its last byte; intervals stand further down."),
    ("first_token_p99", "TTFT counts from when it was due to its first piece of text."),
    ("token_p50", "TPOT is the time per token after the first."),
    ("gap_p99", "ITL is the gap between two pieces of text."),
    ("tokens", "Tokens per second are output tokens of answers, as the provider counts them."),
)
_TOGETHER = "Means and percentiles over calls at different rates describe no rate."


class LoadPage(Struct, frozen=True):
    """The HTML of a page, and the tables written to files beside it."""

    page: bytes
    tables: tuple[Table, ...]


def drawn(tests: Sequence[LoadTest], command: str = "") -> LoadPage:
    """Returns the page and tables of load tests; the same tests always give the same bytes."""
    every = series_of(tests)
    made = {table.name: table for table in _tables(every)}
    sections = tuple(_sections(tests, every, made, command))
    figures = tuple(figure for figure, _ in _figures(every, made))
    contents = PageContents(name="Load tests", sections=sections, figures=figures, style=_STYLE)
    return LoadPage(framed_page(sentences.title_of(tests), [contents]), tuple(made.values()))


_STYLE = """
.bottleneck { border-width: 2px; border-left-width: 8px; font-size: 1.05rem; }
.bottleneck strong { display: block; font-size: 1.2rem; }
.plot svg { width: 100%; max-width: 40rem; }
#rates th, #rates td { padding-left: 0.45rem; padding-right: 0.45rem; }
@media (max-width: 67.99rem) {
  /* The page has no script that could close the contents, so they take few lines. */
  .contents > ol { display: flex; flex-wrap: wrap; gap: 0 1rem; }
}
"""


def _tables(every: Sequence[LoadSeries]) -> Iterator[Table]:
    yield tables.by_rate_table(every)
    yield tables.percentiles_table(every)
    yield tables.over_time_table(every)
    yield tables.spectrum_table(every)
    if any(each.of.errors for each in every):
        yield tables.errors_table(every)


def _figures(every: Sequence[LoadSeries], made: dict[str, Table]) -> list[tuple[Figure, Table]]:
    """Returns the figures with their tables. A single test has a figure for each model, since overlaid bands would hide
    each other; several tests share one."""
    over_time, spectrum = made[tables.OVER_TIME], made[tables.SPECTRUM]
    is_alone = len({each.test for each in every}) == 1
    figures: list[tuple[Figure, Table]] = []
    if is_alone:
        figures += [(over_time_figure(over_time, each, at), over_time) for at, each in enumerate(every, 1)]
    else:
        figures.append((overlaid_over_time_figure(over_time, every), over_time))
    if series := list(filter(has_several_rates, every)):
        by_rate = made[tables.BY_RATE]
        if is_alone:
            figures += [(by_rate_figure(by_rate, each, at), by_rate) for at, each in enumerate(series, 1)]
        else:
            figures.append((overlaid_by_rate_figure(by_rate, every), by_rate))
    figures.append((spectrum_figure(spectrum, every), spectrum))
    if any(each.of.gap.count for each in every):
        figures.append((streaming_figure(spectrum, every), spectrum))
    return figures


def _sections(
    tests: Sequence[LoadTest], every: Sequence[LoadSeries], made: dict[str, Table], command: str
) -> Iterator[Section]:
    figures = _figures(every, made)
    yield Section("summary", "Summary", _summary(tests, every, made[tables.BY_RATE]))
    yield _drawn_section("over-time", "Over time", figures, "load-over-time")
    if any(map(has_several_rates, every)):
        yield _drawn_section("by-rate", "Percentiles by rate", figures, "load-by-rate")
    yield _drawn_section(
        "percentiles", "Percentiles", figures, "load-spectrum", _percentiles(every, made[tables.PERCENTILES])
    )
    if any(each.of.gap.count for each in every):
        yield _drawn_section("streaming", "Streaming", figures, _STREAMING)
    if tables.ERRORS in made:
        yield Section("errors", "Errors", table_section(made[tables.ERRORS]))
    yield Section("origin", "How it was measured", _origin(tests, every, command))


def _drawn_section(
    name: str, title: str, figures: Sequence[tuple[Figure, Table]], prefix: str, after: str = ""
) -> Section:
    """Returns a section of figures. A table is shown once, beneath the last figure drawn from it."""
    pairs = [(figure, table) for figure, table in figures if figure.name.startswith(prefix)]
    last = {} if prefix == _STREAMING else {table.name: figure for figure, table in pairs}
    body = "".join(figure_html(figure, table if last.get(table.name) is figure else None) for figure, table in pairs)
    return Section(name, title, body + after)


def _percentiles(every: Sequence[LoadSeries], table: Table) -> str:
    together = f'<p class="note">{_TOGETHER}</p>' if any(map(has_several_rates, every)) else ""
    return f"{together}{table_section(table)}" if table.rows else ""


def _summary(tests: Sequence[LoadTest], every: Sequence[LoadSeries], by_rate: Table) -> str:
    return "".join(
        (
            *alerts(tests),
            *(_lead(test, every, len(tests) > 1) for test in tests),
            _rates(every, by_rate),
            *_results(every),
            _remarks(every),
            _left_out(every),
        )
    )


def _lead(test: LoadTest, every: Sequence[LoadSeries], several: bool) -> str:
    name = f"<h3>{in_html(test.name)}</h3>" if several else ""
    series = [each for each in every if each.test == test.name]
    whose = [f"{one_line(each.model, 80)}: " if len(series) > 1 else "" for each in series]
    verdicts = (f"{model}{sentences.verdict(each)}" for model, each in zip(whose, series, strict=True))
    text = " ".join((sentences.tested(test.load), *verdicts))
    return f'{name}<p class="lead">{in_html(text)}</p><p class="note">{in_html(sentences.facts_of(test.load))}</p>'


def _rates(every: Sequence[LoadSeries], by_rate: Table) -> str:
    """Returns the table for a reader; its file has the same figures to the last digit, with their intervals."""
    table = rates_table(every, by_rate)
    title = "Results by rate" if any(map(stepped, every)) else "Results"
    names = {column.name for column in table.columns}
    note = " ".join(text for name, text in _COLUMN_NOTES if name in names)
    return f'<h3>{title}</h3>{table_html(table, "rates", file=csv_name(by_rate))}<p class="note">{note}</p>'


def _results(every: Sequence[LoadSeries]) -> Iterator[str]:
    for each in every:
        whose = f"{in_html(each.name)}: " if len(every) > 1 else ""
        for sentence in sentences.findings(each):
            yield f"<p>{whose}{in_html(sentence)}</p>"


def _remarks(every: Sequence[LoadSeries]) -> str:
    remarks = [(each, warning) for each in every for warning in sentences.warnings(each)]
    return remarks_html(f"{each.name}: {warning}" if len(every) > 1 else warning for each, warning in remarks)


def _left_out(every: Sequence[LoadSeries]) -> str:
    left = [*sentences.left_out(every)]
    return f'<p class="note">Not here: {in_html("; ".join(left))}.</p>' if left else ""


def _origin(tests: Sequence[LoadTest], every: Sequence[LoadSeries], command: str) -> str:
    parts = []
    for test in tests:
        name = f"<h3>{in_html(test.name)}</h3>" if len(tests) > 1 else ""
        parts.append(f"{name}{facts_html(sentences.facts(test))}")
    return "".join(parts) + origins_html((), command)


def alerts(tests: Sequence[LoadTest]) -> Iterator[str]:
    """Yields the alerts of all tests: where the client was the bottleneck, models without an answer, early ends, and
    plans that differ."""
    for test in tests:
        if test.load.client.is_bottleneck:
            strong = _strong(test, tests, "The", "client was the bottleneck.")
            text = (
                "These figures are not the server's alone: the program that measured, or its machine, did not keep up."
            )
            yield _alert(strong, f"{text}{_list(test.load.client.reasons)}", "alert bottleneck")
    for test in tests:
        if gone := unmeasured(test.load.models):
            strong = _strong(test, tests, "There", "is no answer to measure.")
            text = "No time, goodput, goal or knee is given for it."
            yield _alert(strong, f"{text}{_list(f'{sentence}.' for sentence in gone)}")
    for test in tests:
        if sentences.was_cut_short(test.load):
            strong = _strong(test, tests, "It", "ended before all was sent:")
            yield _alert(strong, f"{in_html(sentences.ended(test.load))}.")
    if reason := not_compared(tests):
        yield _alert("Read with care, no comparison:", f"{in_html(reason)}.")


def _strong(test: LoadTest, tests: Sequence[LoadTest], word: str, rest: str) -> str:
    """Returns the beginning of an alert, with the test's name if the page has several."""
    return f"{in_html(test.name)}: {word.lower()} {rest}" if len(tests) > 1 else f"{word} {rest}"


def _alert(strong: str, html: str, kind: str = "alert") -> str:
    return f'<div class="{kind}" role="note"><strong>{strong}</strong> {html}</div>'


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{in_html(one_line(text, 500))}</li>' for text in texts)}</ul>"
