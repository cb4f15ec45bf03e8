"""Claims about how record lines become traces."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from chameleon_records import as_line, as_lines, run_records, talk, turn_record, url
from conversation_traces import traces_of
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.page_urls import hostname_of, normalised_url
from millstream.engine.pairs import Pair
from millstream.metrics.chameleon.lines import marks_of
from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.traces import Traces

PAIR = Pair("m", None)


def gathered(lines: list[bytes]) -> Traces:
    traces = Traces()
    for line in lines:
        traces.add(line)
    return traces


def test_turns_come_in_order_whatever_the_order_of_the_lines() -> None:
    lines = as_lines(run_records(conversations=3, turns=4))
    mixed = lines[:]
    Random(7).shuffle(mixed)
    assert traces_of(mixed) == traces_of(lines)
    assert [turn.number for turn in traces_of(mixed)[0].turns] == [1, 2, 3, 4]


def test_records_of_another_program_need_only_the_fields_named_in_the_design() -> None:
    line = json.dumps({"model": "m", "conversation": "c", "turn": 1, "stance": "critical", "cited": [url(1, 1)]})
    [trace] = traces_of([line.encode()])
    [turn] = trace.turns
    assert (trace.pair, trace.conversation, trace.domain, trace.is_complete) == (PAIR, "c", "", True)
    assert (turn.stance, turn.confidence, len(turn.documents(Readings()))) == ("critical", 0.67, 1)


def test_the_id_stands_in_for_conversation_and_turn() -> None:
    [trace] = traces_of([b'{"model": "m", "id": "a/b/3", "stance": "balanced"}'])
    assert (trace.conversation, trace.turns[0].number) == ("a/b", 3)


def test_without_a_number_the_rationale_is_read_by_the_rubric() -> None:
    line = as_line(turn_record(confidence=None, rationale="It is possibly so."))
    assert traces_of([line])[0].turns[0].confidence == 0.33


@pytest.mark.parametrize(
    ("fields", "confidence"),
    [
        ({"status": "refused", "stance": None}, None),
        ({"status": "refused", "stance": "unclear"}, None),
        ({"stance": "unclear", "raw_judgement": "I can't say."}, None),
        ({"stance": "unclear", "rationale": "It may go either way."}, 0.33),
        ({"stance": "unclear", "rationale": "No side is taken."}, 0.67),
        ({"stance": "critical", "rationale": ""}, 0.67),
        ({"rationale": "It does not clearly agree."}, 0.33),
        ({"rationale": "It does not clearly agree.", "confidence": 0.8}, 0.8),
        ({"status": "refused", "stance": "unclear", "rationale": "It clearly refuses."}, 1.0),
    ],
)
def test_a_confidence_is_of_a_judgement_that_somebody_made(fields: dict[str, Any], confidence: float | None) -> None:
    traces = gathered([as_line(turn_record(**{"confidence": None, **fields}))])
    assert traces.traces()[0].turns[0].confidence == confidence
    assert traces.troubles[PAIR].without_number == (confidence is not None)


def test_a_failure_among_the_records_is_no_turn() -> None:
    traces = Traces()
    assert not traces.add(as_line(turn_record(status="timeout", stance=None)))
    assert traces.pairs() == ()


def test_a_refusal_without_a_stance_is_unclear_and_counted() -> None:
    traces = gathered([as_line(turn_record(status="refused", stance=None))])
    assert traces.traces()[0].turns[0].stance == "unclear"
    assert (traces.troubles[PAIR].refused, traces.troubles[PAIR].unclear) == (1, 1)


def test_of_a_turn_that_comes_twice_the_first_counts_and_the_other_is_told() -> None:
    traces = gathered([*talk("SC"), *talk("BB")])
    [trace] = traces.traces()
    assert [turn.stance for turn in trace.turns] == ["supportive", "critical"]
    assert traces.repeated == ["c/1 of m", "c/2 of m"]


def test_what_was_asked_and_is_not_there_is_missing() -> None:
    lines = [*talk("SC", conversation="short"), *talk("SCB", conversation="whole")]
    found = {trace.conversation: trace for trace in gathered(lines).traces({PAIR: {"short": 3, "whole": 3, "none": 3}})}
    assert {name: trace.is_complete for name, trace in found.items()} == {"none": False, "short": False, "whole": True}
    assert {name: trace.missing for name, trace in found.items()} == {"none": 3, "short": 1, "whole": 0}


def test_without_a_manifest_a_conversation_is_as_long_as_with_any_other_model() -> None:
    lines = [*talk("SC", model="one"), *talk("SCB", model="two"), *talk("S", model="two", conversation="d")]
    found = {(trace.pair.model, trace.conversation): trace.missing for trace in traces_of(lines)}
    assert found == {("one", "c"): 1, ("one", "d"): 1, ("two", "c"): 0, ("two", "d"): 0}


def test_a_gap_in_the_middle_is_missing_too() -> None:
    lines = talk("SCB")
    [trace] = traces_of([lines[0], lines[2]])
    assert (trace.missing, trace.is_complete) == (1, False)


def test_turns_beyond_those_asked_fill_no_gap() -> None:
    [trace] = gathered([talk("SCB")[2]]).traces({PAIR: {"c": 2}})
    assert (trace.missing, len(trace.turns)) == (2, 1)


def test_a_pair_that_was_asked_and_never_answered_stands_there() -> None:
    other = Pair("silent", 0.5)
    found = gathered(talk("SC")).traces({PAIR: {"c": 2}, other: {"c": 2}})
    assert [(trace.pair, len(trace.turns), trace.topic) for trace in found] == [
        (PAIR, 2, "Topic of c"),
        (other, 0, "Topic of c"),
    ]


def test_a_prompt_is_cut_where_the_judges_is() -> None:
    cuts = [{"judge_history": 2}, {"history": 1}, {"dropped": [20]}, {"pages": [1]}, None]
    traces = gathered(as_lines(turn_record(turn=at, cut=cut) for at, cut in enumerate(cuts, 1)))
    assert traces.troubles[PAIR].shortened == 3


def test_troubles_are_counted() -> None:
    hits = [{"url": url(1, at), "status": status} for at, status in enumerate(("ok", "blocked", "blocked", "empty"))]
    traces = gathered(
        [
            as_line({**turn_record(turn=1), "retrieved": hits, "invalid_citations": [21, 99]}),
            as_line(turn_record(turn=2, stance="unclear", raw_judgement="I would say", invalid_citations=3)),
        ]
    )
    told = traces.troubles[PAIR]
    assert dict(told.pages) == {"ok": 1, "blocked": 2, "empty": 1}
    assert (told.turns, told.unclear, told.unreadable, told.invalid_citations) == (2, 1, 1, 5)
    assert told.without_number == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stance": "neutral"}, "stance 'neutral' is unknown; allowed are supportive, critical, balanced, unclear"),
        ({"confidence": 67}, "confidence"),
        ({"turn": 0}, "turn"),
        ({"model": None}, "model"),
        ({"conversation": None, "turn": None, "id": "alone"}, "needs `conversation` and `turn`"),
    ],
)
def test_what_no_turn_can_be_is_refused_with_its_reason(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Traces().add(as_line({**turn_record(), **change}))
    with pytest.raises(ValueError, match="truncated"):
        Traces().add(b'{"model": ')


PIECES = (
    *("http://", "https://", "HTTPS://", "a.test", "B.test", ":80", ":443", "/", "//", "x", "?q=1", "&utm_a=b", "#f"),
    *(" ", "é", "\t", "[", "@", "%20", "corpus:"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_two_addresses_are_one_source_exactly_if_their_normal_forms_are_the_same(address: str) -> None:
    whole = normalised_url(address)
    assert marks_of(address) == (hash(whole), hash(hostname_of(whole) or whole))


def test_the_repr_tells_what_was_gathered() -> None:
    assert repr(gathered(talk("SCB"))) == "<Traces [Pairs: 1, Conversations: 1, Turns: 3]>"


PLAIN_PARTS = [
    "",
    "/",
    "/a",
    "/a/",
    "//",
    "/a b",
    "/?",
    "/?x",
    "/a?x=1",
    "/a?utm_source=x",
    "/a?",
    "/a#f",
    "/a;b",
    "/é",
    "/%C3",
]


@given(
    st.sampled_from(["http", "https", "HTTP", "ftp", "corpus"]),
    st.text("ab.-1:80@A_[]", min_size=1, max_size=8),
    st.sampled_from(PLAIN_PARTS) | st.text("/?#&=utm_ .a", max_size=12),
)
def test_what_is_taken_for_its_normal_form_at_sight_is_in_it(scheme: str, host: str, path: str) -> None:
    url = f"{scheme}://{host}{path}"
    whole = normalised_url(url)
    assert marks_of(url) == (hash(whole), hash(hostname_of(whole) or whole))
