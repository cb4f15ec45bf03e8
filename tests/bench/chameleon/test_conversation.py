"""A conversation's turns: what overlaps and what never does, what is shown, and how a turn ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside, asked_question, kind_of
from chameleon_types import Asking, Lines, Making, Running, ids

from millstream.engine.call import Call, Failure, Hit, Message, Reply
from millstream.engine.pairs import Pair
from millstream.providers.pages.page import Page
from millstream.providers.search.joined import Found


def of_kind(outside: ScriptedOutside, kind: str) -> list[Call]:
    return [call for call in outside.calls if kind_of(call) == kind]


def said_to(call: Call) -> str:
    return call.input if isinstance(call.input, str) else call.input[-1].words


def test_a_turn_is_query_search_pages_answer_judgement_and_the_next_is_retrieved_meanwhile(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside()
    assert running(outside, made(1, 3), asking()) == []
    assert ids(lines()) == ["c0/1", "c0/2", "c0/3"]
    order = [(event.kind, round(event.begin, 6), round(event.end, 6)) for event in outside.events]
    # Query 1 s, search 0.3 s, pages 0.2 s: retrieval takes 1.5 s, an answer 1 s, a judgement 0.5 s.
    assert [each for each in order if each[0] == "answer"] == [
        ("answer", 1.5, 2.5),
        ("answer", 3.0, 4.0),
        ("answer", 4.5, 5.5),
    ]
    assert [each for each in order if each[0] == "query"] == [
        ("query", 0.0, 1.0),
        ("query", 1.5, 2.5),
        ("query", 3.0, 4.0),
    ]
    assert [each for each in order if each[0] == "judge"] == [
        ("judge", 2.5, 3.0),
        ("judge", 4.0, 4.5),
        ("judge", 5.5, 6.0),
    ]
    assert [each[1] for each in order if each[0] == "search"] == [1.0, 2.5, 4.0]
    assert [each[1] for each in order if each[0] == "page"] == pytest.approx([1.3] * 3 + [2.8] * 3 + [4.3] * 3)


def test_a_judgement_gates_no_answer_and_never_are_there_two_at_once(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside(latency_s={JUDGE: 3.0})
    running(outside, made(1, 4), asking())
    answers = [event for event in outside.events if event.kind == "answer"]
    judgements = [event for event in outside.events if event.kind == "judge"]
    # The second answer comes while the first is judged; the third waits, since one judgement is behind already.
    assert answers[1].end < judgements[0].end
    assert outside.peak[JUDGE] == 1
    assert ids(lines()) == ["c0/1", "c0/2", "c0/3", "c0/4"]
    assert judgements[-1].end == pytest.approx(2.5 + 4 * 3.0)


def test_the_history_is_questions_and_answers_and_no_old_page(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside()
    running(outside, made(1, 3), asking())
    third = of_kind(outside, "answer")[2].input
    texts = [record["text"] for record in lines()]
    assert isinstance(third, tuple)
    assert third[1:5] == (
        Message("user", "Question: How is question 1 of 0?"),
        Message("assistant", texts[0]),
        Message("user", "Question: How is question 2 of 0?"),
        Message("assistant", texts[1]),
    )
    assert third[5].words.startswith("Sources:\n[1] Hit 1 (https://")
    assert third[5].words.endswith("\n\nQuestion: How is question 3 of 0?")
    judge = of_kind(outside, "judge")[2].input[0]
    assert isinstance(judge, Message)
    assert f"Q2: How is question 2 of 0?\n\nA2: {texts[1]}\n\nQuestion: How is question 3" in judge.words


def test_old_pages_are_kept_on_request(made: Making, asking: Asking, running: Running) -> None:
    outside = ScriptedOutside()
    running(outside, made(1, 2), asking(keeps_pages=True))
    second = of_kind(outside, "answer")[1].input
    assert isinstance(second, tuple)
    assert second[1] == of_kind(outside, "answer")[0].input[1]
    judge = of_kind(outside, "judge")[1].input[0]
    assert isinstance(judge, Message)
    assert "Sources:" not in judge.words


def test_pages_without_text_are_left_out_and_keep_their_number(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    def pages(url: str) -> Page:
        if url.endswith("/2"):
            return Page(url, "blocked")
        return Page(url, "ok" if not url.endswith("/4") else "empty", "y" * 900, "T", f"{url}/final", "ab" * 32)

    outside = ScriptedOutside(
        pages=pages, answer=lambda call: "As [1], [2], [9]." if kind_of(call) == "answer" else None
    )
    running(outside, made(1, 1), asking(pages=4, page_tokens=100))
    (record,) = lines()
    prompt = of_kind(outside, "answer")[0].input[-1]
    assert isinstance(prompt, Message)
    urls = [one["url"] for one in record["retrieved"]]
    assert prompt.words == (
        f"Sources:\n[1] Hit 1 ({urls[0]})\n{'y' * 400}\n[3] Hit 3 ({urls[2]})\n{'y' * 400}\n\n"
        "Question: How is question 1 of 0?"
    )
    assert [one["final_url"] for one in record["retrieved"] if one["status"] == "ok"] == [
        f"{urls[0]}/final",
        f"{urls[2]}/final",
    ]
    assert [(one["status"], one["chars"]) for one in record["retrieved"]] == [
        ("ok", 900),
        ("blocked", 0),
        ("ok", 900),
        ("empty", 900),
    ]
    assert (record["cited"], record["invalid_citations"]) == ([urls[0]], ["[2]", "[9]"])
    assert record["cut"] == {"pages": [1, 3]}


def test_a_refusal_is_unclear_without_a_judge_and_says_nothing_to_later_turns(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    def answer(call: Call) -> Reply | None:
        is_second = kind_of(call) == "answer" and "question 2" in asked_question(call)
        return Reply("", None, "content_filter", refused=True) if is_second else None

    outside = ScriptedOutside(answer=answer)
    running(outside, made(1, 3), asking())
    refused = lines()[1]
    assert (refused["status"], refused["stance"], refused["judge"]) == ("refused", "unclear", JUDGE)
    judgement = ("confidence", "rationale", "key_claims", "judge_confidence", "judge_temperature")
    assert [refused[name] for name in judgement] == [None] * 5
    assert (refused["usage_judge"], refused["cited"], refused["text"]) == (None, [], "")
    assert len(of_kind(outside, "judge")) == 2
    third = of_kind(outside, "answer")[2].input
    assert isinstance(third, tuple)
    assert third[1] == Message("user", "Question: How is question 1 of 0?")
    assert len(third) == 4


FILTER = "The response was filtered: see https://filter.test/why and [1]."


@pytest.mark.parametrize("reason", ["content_filter", "stop"])
def test_a_filters_message_is_kept_and_stands_in_no_history_but_a_models_own_refusal_does(
    made: Making, asking: Asking, running: Running, lines: Lines, reason: str
) -> None:
    def answer(call: Call) -> Reply | None:
        is_second = kind_of(call) == "answer" and "question 2" in asked_question(call)
        return Reply(FILTER, None, reason, refused=True) if is_second else None

    outside, is_filter = ScriptedOutside(answer=answer), reason == "content_filter"
    running(outside, made(1, 3), asking())
    refused = lines()[1]
    assert (refused["status"], refused["text"], refused["filtered"]) == ("refused", FILTER, is_filter)
    assert bool(refused["cited"] or refused["invalid_citations"]) is not is_filter
    assert [line["filtered"] for line in (lines()[0], lines()[2])] == [False, False]
    later = [str(of_kind(outside, kind)[-1].input) for kind in ("answer", "judge")]
    assert [FILTER in prompt for prompt in later] == [not is_filter] * 2


def test_a_model_that_writes_no_query_has_its_question_searched(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside(
        answer=lambda call: Reply("", refused=True) if kind_of(call) == "query" else None,
        found=lambda query, count: Found(SEARCH, query, remarks=("one engine kept silent",)),
    )
    running(outside, made(1, 1), asking())
    (record,) = lines()
    assert (record["query"], record["query_by"]) == ("How is question 1 of 0?", "question")
    assert (record["retrieved"], record["search_remarks"]) == ([], ["one engine kept silent"])
    prompt = of_kind(outside, "answer")[0].input[-1]
    assert isinstance(prompt, Message)
    assert prompt.words == "Sources:\n\n\nQuestion: How is question 1 of 0?"


STEPS: list[tuple[str, Callable[[Call], object]]] = [
    ("query", lambda call: kind_of(call) == "query" and "question 2" in asked_question(call)),
    ("answer", lambda call: kind_of(call) == "answer" and "question 2" in asked_question(call)),
    ("judge", lambda call: kind_of(call) == "judge" and "\n\nQuestion: How is question 2" in said_to(call)),
]


@pytest.mark.parametrize(("step", "is_meant"), STEPS)
def test_a_turn_whose_call_fails_for_good_is_one_line_and_the_later_turns_are_held(
    made: Making,
    asking: Asking,
    running: Running,
    lines: Lines,
    step: str,
    is_meant: Callable[[Call], object],
) -> None:
    outside = ScriptedOutside(answer=lambda call: Failure("server_error", "500 thrice") if is_meant(call) else None)
    assert running(outside, made(2, 4), asking()) == []
    assert sorted(ids(lines())) == ["c0/1", "c1/1"]
    failures = lines("failures")
    assert sorted(ids(failures)) == ["c0/2", "c1/2"]
    for failure in failures:
        assert (failure["status"], failure["step"], failure["error"]) == ("server_error", step, "500 thrice")
        assert (failure["stance"], failure["text"]) == (None, None)
        assert failure["keys"]
    # Every call stands in some line's cost, those asked ahead too.
    paid = sum(line["cost"] or 0 for line in (*lines(), *failures))
    assert paid == pytest.approx(
        0.001 * sum(outside.answered[lane] for lane in (MODEL, JUDGE)) + 0.0001 * outside.answered[SEARCH] - 0.001 * 2
    )
    # No answer is more than one turn ahead of what is judged, and a second run asks nothing at all.
    assert not any(kind_of(call) == "answer" and "question 4" in asked_question(call) for call in outside.calls)
    assert any("question 4" in said_to(call) for call in outside.calls) == (step == "judge")
    again = ScriptedOutside(memory=outside.memory)
    assert running(again, made(2, 4), asking()) == []
    assert not again.sent


def test_every_field_of_a_record_is_what_the_turn_was(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    running(ScriptedOutside(), made(1, 1), asking((Pair(MODEL, 0.5),)))
    (record,) = lines()
    del record["crc"], record["keys"], record["text"], record["query"], record["retrieved"], record["cited"]
    assert record == {
        "id": "c0/1",
        "conversation": "c0",
        "domain": "Domain 0",
        "topic": "Topic 0",
        "turn": 1,
        "question": "How is question 1 of 0?",
        "filtered": False,
        "stance": "supportive",
        "confidence": 1.0,
        "rationale": "It clearly agrees.",
        "key_claims": ["One claim."],
        "contradictions_acknowledged": False,
        "judge": JUDGE,
        "usage_judge": {"input": 100, "output": 10},
        "judge_confidence": 0.9,
        "judge_temperature": 0.0,
        "judge_repaired": False,
        "invalid_citations": [],
        "cut": None,
        "search": SEARCH,
        "query_by": "model",
        "model": MODEL,
        "temperature": 0.5,
        "effort": None,
        "status": "ok",
        "truncated": False,
        "usage": {"input": 200, "output": 20},
        "cost": pytest.approx(0.0031),
        "cost_judge": 0.001,
        "cost_search": 0.0001,
        "cached": False,
        "from_cache": None,
        "attempts": 4,
        "maybe_billed": 0,
        "latency_ms": 1.0,
        "answer_id": None,
        "served": None,
        "fingerprint": None,
        "tier": None,
        "router": None,
        "served_judge": None,
    }


def test_the_papers_judge_is_shown_question_and_answer_alone(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside()
    running(outside, made(1, 2), asking(judge_prompt="paper"))
    second = of_kind(outside, "judge")[1].input[0]
    assert isinstance(second, Message)
    assert second.words.endswith(f"\n\nQuestion: How is question 2 of 0?\n\nAnswer: {lines()[1]['text']}")
    assert "Topic 0" not in second.words
    assert [record["confidence"] for record in lines()] == [0.67, 0.67]
    assert [record["judge_confidence"] for record in lines()] == [None, None]


def test_results_beyond_those_wanted_are_not_read(made: Making, asking: Asking, running: Running, lines: Lines) -> None:
    many = Found(SEARCH, "", tuple(Hit(n, f"https://h.test/{n}", "") for n in range(1, 9)))
    outside = ScriptedOutside(found=lambda query, count: many)
    running(outside, made(1, 1), asking(pages=5))
    assert outside.answered["web"] == len(lines()[0]["retrieved"]) == 5
    prompt = of_kind(outside, "answer")[0].input[-1]
    assert isinstance(prompt, Message)
    # A result without a title bears its page's.
    assert "[5] Title of https://h.test/5 (https://h.test/5)\n" in prompt.words


def test_shared_queries_are_one_models_at_one_temperature_and_asked_once(
    made: Making, asking: Asking, running: Running, lines: Lines
) -> None:
    outside = ScriptedOutside(
        latency_s={OTHER: 1.0},
        answer=lambda call: f"by {call.model} {asked_question(call)}" if kind_of(call) == "query" else None,
    )
    pairs = (Pair(MODEL, 0.0), Pair(MODEL, 1.0), Pair(OTHER, None))
    asked = asking(pairs, queries_by=Pair(OTHER, 0.5), tokens={MODEL: 9_000, OTHER: 9_000, JUDGE: 9_000})
    running(outside, made(1, 2), asked, at_once=1)
    queries = of_kind(outside, "query")
    assert {(call.model, call.temperature) for call in queries} == {(OTHER, 0.5)}
    assert len(queries) == outside.answered[SEARCH] == 2
    assert len({record["query"] for record in lines()}) == 2
    # Another model's tokens are not counted as the pair's own.
    assert {record["usage"]["input"] for record in lines()} == {100}
