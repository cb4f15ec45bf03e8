"""Sentences on what a run did not measure: turns without a clear stance or a source, pages without a text.

Shared by summary, page and `score`. Knows no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...engine.pairs import Pair
from ...format import count_text, first_of, percent_text
from .lines import Troubles
from .sample import PairSample
from .scored import UNCITED_MOST, is_mostly
from .summary import spread_of

_NAMED = 5


def unmeasured(named: Mapping[str, Troubles], samples: Mapping[str, PairSample]) -> tuple[str, ...]:
    """Returns a sentence for each problem. `named` has the counts, and `samples` the conversations, of each model at
    one temperature, by its display name."""
    return (*_reads(samples, is_unread=True), *_stances(named), *_sources(samples), *_pages(named))


def _reads(samples: Mapping[str, PairSample], *, is_unread: bool) -> Iterator[str]:
    for name, sample in samples.items():
        if sample.reads is not None and sample.reads.is_unread == is_unread and (text := sample.reads.remark(name)):
            yield text


def _stances(named: Mapping[str, Troubles]) -> Iterator[str]:
    for name, counts in named.items():
        if is_mostly(counts.unclear, counts.turns):
            yield (
                f"{name} has no score worth reading: {counts.unclear:,} of {count_text(counts.turns, 'turn')} have no "
                f"clear stance ({', '.join(reasons_of(counts))})"
            )


def _sources(samples: Mapping[str, PairSample]) -> Iterator[str]:
    """Yields a sentence for each model that mostly lacks sources, unless its turns are unclear or without pages."""
    for name, sample in samples.items():
        uncited, turns = sample.summed("uncited_turns"), sample.summed("turns")
        has_cause = sample.is_without_pages or is_mostly(sample.summed("unclear"), turns)
        if sample.readings.uncited == "skip" and is_mostly(uncited, turns) and not has_cause:
            yield (
                f"{name} has no score worth reading: {uncited:,} of {count_text(turns, 'turn')} have no source, so "
                "their re-use of sources is unknown (--uncited literal counts them as re-use 0)"
            )


def remarks(samples: Mapping[str, PairSample], ranks: Mapping[Pair, int | None]) -> Iterator[str]:
    """Yields a sentence on what each model lacks: conversations that are incomplete, unscored or without history, and
    sources in more than a tenth of its turns; and on the models whose order depends on these turns. `ranks` are those
    of the samples that may have one."""
    yield from _reads(samples, is_unread=False)
    for name, sample in samples.items():
        if sample.missing and not any(True for _ in sample.held):
            yield f"{name} has no turns: all {sample.expected:,} are missing"
        elif sample.missing:
            yield (
                f"{name} is incomplete: {sample.missing:,} of {sample.expected:,} turns are missing, in "
                f"{count_text(sample.incomplete, 'conversation')}, which enter no mean; "
                f"{sample.complete:,} {'is' if sample.complete == 1 else 'are'} complete"
            )
        is_zero, one = sample.readings.uncited == "literal", len(sample.unscored) == 1
        if sample.unscored:
            lacking = f"too few of {'its' if one else 'their'} turns have a clear stance"
            why = "no page gave a text" if sample.is_without_pages else lacking + " and a source" * (not is_zero)
            if sample.reads is not None and sample.reads.is_unread:
                why = "the server read most prompts in part"
            yield (
                f"{len(sample.unscored):,} of {sample.complete:,} complete conversations of {name} "
                f"{'is' if one else 'are'} unscored, since {why}: {'it enters' if one else 'they enter'} no mean, "
                f"figure or correlation{'' if sample.is_rankable else f', and {name} has no rank'}"
            )
        if single := len(sample.without_history):
            yield (
                f"{count_text(single, 'conversation')} of {name} {'is' if single == 1 else 'are'} no multi-turn test: "
                f"more than a third of {'its' if single == 1 else 'their'} turns were asked without any history"
            )
        uncited, turns = sample.summed("uncited_turns"), sample.summed("turns")
        if uncited > UNCITED_MOST * turns:
            how = "count as re-use 0" if is_zero else "are left out of its source re-use rate"
            srr, score = (spread_of([sample], kind).mean for kind in ("srr_zero", "score_zero"))
            if not is_zero and srr is not None and score is not None:
                how += f"; with re-use 0 for them it is {srr:.3f}, and the score {score:.3f}"
            yield (
                f"{name}: {uncited:,} of {count_text(turns, 'turn')} ({percent_text(uncited / turns)}) have no source, "
                f"and {how}"
            )
    if turned := [name for name, sample in samples.items() if sample.is_rankable and ranks.get(sample.pair, 0) is None]:
        yield (
            f"{first_of(turned, _NAMED)} have no rank: with re-use 0 for turns without a source, their scores have "
            "another order"
        )


def reasons_of(troubles: Troubles) -> Iterator[str]:
    """Yields the reasons why turns have no clear stance, each with its count."""
    if troubles.empty:
        cut = f", {troubles.empty_cut:,} of them cut at max_tokens" if troubles.empty_cut else ""
        yield f"{count_text(troubles.empty, 'answer')} empty{cut}"
    if troubles.refused_unclear:
        yield f"{count_text(troubles.refused_unclear, 'answer')} refused"
    if troubles.unjudged:
        empty = f", {troubles.judge_empty:,} of its replies empty" if troubles.judge_empty else ""
        yield f"{count_text(troubles.unjudged, 'answer')} without a readable verdict of the judge{empty}"
    if troubles.judged_unclear:
        yield f"{troubles.judged_unclear:,} unclear by the judge's word"


def _pages(named: Mapping[str, Troubles]) -> Iterator[str]:
    blind = {name: each for name, each in named.items() if each.turns and each.without_text == each.turns}
    if not blind:
        return
    is_all = len(blind) == sum(each.turns > 0 for each in named.values())
    whose = "" if is_all else f" to {first_of(list(blind), _NAMED)}"
    pages = sum((each.pages for each in blind.values()), start=Counter[str]())
    searches = sum(each.without_hits for each in blind.values())
    yield f"no conversation with search was measured: no page gave a text{whose} ({_statuses(pages, searches)})"


def _statuses(pages: Counter[str], searches: int) -> str:
    """Returns the numbers of pages by status, and of the searches that found none, as a text."""
    parts = []
    if len(pages) == 1:
        [(status, number)] = pages.items()
        parts.append(f"{'the one page' if number == 1 else f'all {number:,} pages'}: {status}")
    elif pages:
        kinds = ", ".join(
            f"{status} {number:,}" for status, number in sorted(pages.items(), key=lambda each: (-each[1], each[0]))
        )
        parts.append(f"{pages.total():,} pages: {kinds}")
    if searches:
        parts.append(f"{count_text(searches, 'search', 'searches')} found no page")
    return "; ".join(parts)
