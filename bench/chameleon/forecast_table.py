"""Formats the forecast of a Chameleon run as a text, lane by lane.

Owns the texts; `forecast` computes the figures. All assumptions are shown with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert, to_builtins

from ...engine.attempts.prices import Price
from ...format import decimal_text, dollars, rough_minutes, span_text
from ...report.text import table
from ..evaluation.forecast import CONDITION
from ..evaluation.preparation import PreparedRun
from .forecast import WEB, LaneForecast, SearchTerms, forecast
from .work import ChameleonWork

_COLUMNS = ("lane", "calls", "input tokens", "output tokens", "cost", "time under its quota")


def forecast_of(prepared: PreparedRun) -> dict[str, Any]:
    """Returns one run's figures as plain values. The cache is not read, since prompts depend on answers."""
    work = prepared.work
    assert isinstance(work, ChameleonWork)
    settings, prices = prepared.settings, prepared.settings.price_table()
    quotas = {name: settings.quota_of(name) for name in (*work.lanes, WEB)}
    known: dict[str, Price] = {name: price for name in work.lanes if (price := prices.get(name)) is not None}
    engine = settings.search_row_of(work.asked.search)
    # The corpus is on this machine: its searches cost nothing.
    terms = SearchTerms(dollars_per_1000=0.0)
    if engine is not None:
        terms = SearchTerms(engine.reach.count_max, engine.dollars_per_1000)
    found = forecast(work.dataset, work.asked, quotas, known, terms)
    return {
        "folder": None if prepared.out.name == "-" else str(prepared.out),
        "dataset": prepared.dataset,
        "pairs": [str(pair) for pair in work.pairs()],
        **to_builtins(found),
        "thinking": [name for name in work.lanes if settings.facts_of(name).thinks],
        "prices_of": prices.oldest_date(list(known)) if known else None,
    }


def tell(found: Mapping[str, Any]) -> str:
    lanes = [_lane(each) for each in found["lanes"]]
    lines = [
        table([_COLUMNS, *map(_row, lanes)]),
        "",
        f"{found['turns']:,} turns in {found['conversations']:,} conversations ({', '.join(found['pairs'])}); data set "
        f"{found['dataset']['path']}",
    ]
    low, high = found["cost"]
    # Free searches alone are no cost to show for models without a price.
    if high > 0 or not found["unpriced"]:
        lines.append(f"cost: {span_text((low, high), dollars)}, {CONDITION} or this machine's")
        if found["prices_of"]:
            lines.append(f"prices as listed on {found['prices_of']} or later: check them")
    if found["unpriced"]:
        names = found["unpriced"]
        lines.append(f'without a price: {", ".join(names)}; give one under [prices."{names[0]}"] in --config FILE')
    if found["minutes"] is not None:
        lines.append(
            f"time of the quotas alone: {span_text(found['minutes'], rough_minutes)}, as {found['slowest']} allows; "
            "turns follow each other, each with its search, pages, answer and judgement, so the run takes longer"
        )
    if found["thinking"]:
        names = ", ".join(found["thinking"])
        lines.append(f"think before they answer: {names}; what they think costs as output and stands in no figure here")
    assumed = found["assumed"]
    lines.append(
        f"assumed: answers of {_to(assumed['answer'])} tokens, judgements of {_to(assumed['judgement'])}, "
        f"{_percents(assumed['pages_with_text'])} of the results with a text, {_percents(assumed['page_filled'])} of a "
        f"page's budget filled; a token is 4 characters"
    )
    return "\n".join(lines)


def _lane(each: Mapping[str, Any]) -> LaneForecast:
    return convert(each, LaneForecast)


def _row(lane: LaneForecast) -> tuple[str, ...]:
    name = "pages" if lane.lane == WEB else lane.lane
    is_model = lane.input_tokens.most > 0
    return (
        name,
        span_text(lane.calls, decimal_text),
        span_text(lane.input_tokens, decimal_text) if is_model else "-",
        span_text(lane.output_tokens, decimal_text) if is_model else "-",
        ("-" if name == "pages" else "no price")
        if lane.cost is None
        else span_text((lane.cost.least, lane.cost.most), dollars),
        "no quota" if lane.minutes is None else span_text(lane.minutes, rough_minutes),
    )


def _to(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} to {pair[1]:,}"


def _percents(pair: tuple[float, float]) -> str:
    return f"{100 * pair[0]:.0f} to {100 * pair[1]:.0f}%"
