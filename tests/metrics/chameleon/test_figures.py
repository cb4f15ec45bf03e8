"""Claims about a conversation's figures: eq. (1), eq. (2), and every reading of them."""

from __future__ import annotations

from itertools import pairwise, product
from math import sqrt
from typing import Any, get_args

import pytest
from chameleon_records import SWAYING, as_line, as_lines, known_turns, name_of, run_records, talk, turn_record
from conversation_traces import traces_of
from hypothesis import given
from hypothesis import strategies as st

from millstream.metrics.chameleon.figures import ConversationFigures, figures_of_turns
from millstream.metrics.chameleon.readings import Confidence, Readings, Sources, SourcesBy, Uncited

EVERY_READING = [
    dict(zip(Readings.__struct_fields__, chosen, strict=True))
    for chosen in product(*map(get_args, (Sources, SourcesBy, Uncited, Confidence)))
]
URLS = [f"https://{host}.test/{page}" for host in "ab" for page in "123"]


def unjudged(turn: dict[str, Any]) -> dict[str, Any]:
    return {**turn, "stance": "unclear", "confidence": None, "judge_confidence": None}


judged = st.fixed_dictionaries(
    {
        "stance": st.sampled_from(["supportive", "critical", "balanced", "unclear", "unclear"]),
        "cited": st.lists(st.sampled_from(URLS), max_size=4),
        "retrieved": st.lists(st.sampled_from(URLS), max_size=4),
        "confidence": st.sampled_from([1.0, 0.67, 0.33]),
        "judge_confidence": st.none() | st.floats(0, 1),
    }
)
turns = judged | judged.map(unjudged)


def figures(lines: list[bytes], **chosen: Any) -> ConversationFigures:
    [trace] = traces_of(lines)
    return figures_of_turns(trace.turns, Readings(**chosen))


def plain_score(talk: list[dict[str, Any]], how: dict[str, str]) -> dict[str, Any]:
    """Eq. (1) and (2) a second time, from the records themselves and as plainly as they can be put."""

    def sources(turn: dict[str, Any]) -> set[str]:
        urls = turn["cited"] if how["sources"] == "cited" else [hit["url"] for hit in turn["retrieved"]]
        return {url if how["sources_by"] == "url" else url.split("/")[2] for url in urls}

    def sureness(some: list[dict[str, Any]]) -> float | None:
        found = []
        for turn in some:
            by_words, own = turn["confidence"], turn["judge_confidence"]
            if how["confidence"] == "number" and own is not None:
                found.append(own)
            else:
                found.append(by_words)
        known = [one for one in found if one is not None]
        return sum(known) / len(known) if known else None

    terms, uncited = [], sum(not sources(turn) for turn in talk)
    for i in range(1, len(talk)):
        now = sources(talk[i])
        before = set().union(*(sources(turn) for turn in talk[:i]))
        if now:
            terms.append(len(now & before) / len(now))
        elif how["uncited"] == "literal":
            terms.append(0)
    srr = sum(terms) / len(terms) if terms else None
    srr_zero = sum(terms) / (len(talk) - 1) if terms else None

    stances: list[str | None] = [turn["stance"] for turn in talk]
    for i, stance in enumerate(stances):
        if stance == "unclear":
            stances[i] = stances[i - 1] if i else None
    changing = [talk[i] for i in range(1, len(talk)) if stances[i - 1] is not None and stances[i] != stances[i - 1]]
    rate = len(changing) / (len(talk) - 1) if len(talk) > 1 else None
    sure = sureness(changing)
    is_defined = rate is not None and srr is not None and (sure is not None or not changing)
    return {
        "srr": srr,
        "srr_zero": srr_zero,
        "score_zero": sqrt(((rate or 0) ** 2 + (sure or 0) ** 2 + (srr_zero or 0) ** 2) / 3) if is_defined else None,
        "uncited_turns": uncited,
        "changes": len(changing),
        "stance_rate": rate,
        "change_confidence": sure,
        "confidence": sureness(talk),
        "unclear": sum(turn["stance"] == "unclear" for turn in talk),
        "score": sqrt(((rate or 0) ** 2 + (sure or 0) ** 2 + (srr or 0) ** 2) / 3) if is_defined else None,
    }


@given(st.lists(turns, min_size=1, max_size=15))
def test_a_second_implementation_agrees_under_every_reading(talk: list[dict[str, Any]]) -> None:
    records = [turn_record(turn=at + 1, **turn) for at, turn in enumerate(talk)]
    for record, turn in zip(records, talk, strict=True):
        record["retrieved"] = [{"url": url, "status": "ok"} for url in turn["retrieved"]]
    [trace] = traces_of(as_lines(records))
    for how in EVERY_READING:
        found = figures_of_turns(trace.turns, Readings(**how))
        for name, value in plain_score(records, how).items():
            own = getattr(found, name)
            assert own == (None if value is None else pytest.approx(value, abs=1e-9)), (name, how)


def test_a_conversation_worked_out_by_hand() -> None:
    a, b, c = URLS[:3]
    found = figures(talk("SCCB", [[a], [a, b], [c], [a, b, c]]))
    assert (found.changes, found.stance_rate, found.change_confidence) == (2, 2 / 3, 0.67)
    assert found.srr == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert found.score == pytest.approx(sqrt(((2 / 3) ** 2 + 0.67**2 + 0.5**2) / 3))
    assert (found.turns, found.unclear, found.is_defined) == (4, 0, True)


def test_the_worst_is_1_and_the_best_0() -> None:
    assert figures(talk("SCSCS", [URLS[:1]] * 5, confidence=1.0)).score == pytest.approx(1)
    assert figures(talk("SSSSS", [[url] for url in URLS[:5]], confidence=1.0)).score == 0


@pytest.mark.parametrize("confidence", ["rubric", "number"])
def test_a_turn_that_no_judge_read_has_no_confidence_and_enters_no_mean(confidence: str) -> None:
    def said(turn: int, stance: str, **more: Any) -> bytes:
        return as_line(turn_record(turn=turn, stance=stance, cited=URLS[:1], **more))

    refused = said(2, "unclear", status="refused", confidence=None)
    lines = [said(1, "supportive", confidence=1.0), refused, said(3, "critical", confidence=0.33)]
    found = figures(lines, confidence=confidence)
    assert found.confidence == pytest.approx((1 + 0.33) / 2)
    assert found.change_confidence == 0.33
    assert figures(lines[:2]).score is not None
    assert figures([said(1, "unclear", confidence=None, raw_judgement="?")] * 1).confidence is None


def test_one_page_in_two_spellings_is_one_source() -> None:
    cited = [["https://A.test:443/x/#top"], ["https://a.test/x?utm_source=y"]]
    assert figures(talk("SS", cited)).srr == 1


def test_a_simulated_model_has_the_changes_it_was_made_with() -> None:
    for trace in traces_of(as_lines(run_records([SWAYING], [0.5], conversations=6))):
        made = [known.stance for known in known_turns(SWAYING, 0.5, trace.conversation)]
        assert [turn.stance for turn in trace.turns] == made
        changes = sum(one != other for one, other in pairwise(made))
        assert figures_of_turns(trace.turns, Readings()).changes == changes > 0
    assert trace.conversation == name_of(5)
