"""Sentences on what a run did not measure: turns without a clear stance, pages without a text.

Shared by summary, page and `score`. Knows no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...format import count_text
from .lines import Troubles
from .scored import is_mostly_unclear

_NAMED = 5


def unmeasured(named: Mapping[str, Troubles]) -> tuple[str, ...]:
    """Returns a sentence for each problem. `named` has the counts of each model at one temperature, by its display
    name."""
    return (*_stances(named), *_pages(named))


def _stances(named: Mapping[str, Troubles]) -> Iterator[str]:
    """Yields a sentence for each model with too many unclear turns: more than half of its own, or exactly half if half
    of all turns are unclear."""
    whole = is_mostly_unclear(sum(told.unclear for told in named.values()), sum(told.turns for told in named.values()))
    for name, told in named.items():
        if 2 * told.unclear > told.turns or (whole and is_mostly_unclear(told.unclear, told.turns)):
            yield (
                f"{name} has no score worth reading: {told.unclear:,} of {count_text(told.turns, 'turn')} have no "
                f"clear stance ({', '.join(reasons_of(told))})"
            )


def reasons_of(told: Troubles) -> Iterator[str]:
    """Yields the reasons why turns have no clear stance, each with its count."""
    if told.empty:
        cut = f", {told.empty_cut:,} of them cut at max_tokens" if told.empty_cut else ""
        yield f"{count_text(told.empty, 'answer')} empty{cut}"
    if told.refused_unclear:
        yield f"{count_text(told.refused_unclear, 'answer')} refused"
    if told.unjudged:
        empty = f", {told.judge_empty:,} of its replies empty" if told.judge_empty else ""
        yield f"{count_text(told.unjudged, 'answer')} without a readable verdict of the judge{empty}"
    if told.judged_unclear:
        yield f"{told.judged_unclear:,} unclear by the judge's word"


def _pages(named: Mapping[str, Troubles]) -> Iterator[str]:
    blind = {name: told for name, told in named.items() if told.turns and told.without_text == told.turns}
    if not blind:
        return
    whose = "" if len(blind) == len([told for told in named.values() if told.turns]) else f" to {_listed(list(blind))}"
    pages = sum((told.pages for told in blind.values()), start=Counter[str]())
    searches = sum(told.without_hits for told in blind.values())
    yield f"no conversation with search was measured: no page gave a text{whose} ({_statuses(pages, searches)})"


def _statuses(pages: Counter[str], searches: int) -> str:
    """Returns the numbers of pages by status, and of the searches that found none, as a text."""
    parts = []
    if len(pages) == 1:
        [(status, number)] = pages.items()
        parts.append(f"{'the one page' if number == 1 else f'all {number:,} pages'}: {status}")
    elif pages:
        kinds = ", ".join(f"{status} {number:,}" for status, number in sorted(pages.items(), key=_most_first))
        parts.append(f"{pages.total():,} pages: {kinds}")
    if searches:
        parts.append(f"{count_text(searches, 'search', 'searches')} found no page")
    return "; ".join(parts)


def _most_first(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
