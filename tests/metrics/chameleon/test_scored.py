"""Claims about what is scored: a conversation without clear turns has no figure, and no model is ranked by rubbish."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chameleon_records import SWAYING, as_line, as_lines, run_records, talk, turn_record
from conversation_traces import traces_of

from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.sample import PairSample, ranks, samples
from millstream.metrics.chameleon.scores import scores
from millstream.metrics.chameleon.summary import by_temperature, by_turn
from millstream.metrics.chameleon.traces import Traces
from millstream.metrics.chameleon.unmeasured import unmeasured

PAGE = {"query": "q", "retrieved": [{"url": "https://a.test/1", "status": "ok"}]}


def gathered(lines: list[bytes]) -> Traces:
    traces = Traces()
    for line in lines:
        traces.add(line)
    return traces


def scored(lines: list[bytes], **chosen: Any) -> dict[str, Any]:
    found: dict[str, Any] = scores(gathered(lines), Readings(**chosen))
    return found


def told(lines: list[bytes]) -> tuple[str, ...]:
    named = {str(sample.pair): sample for sample in sampled(lines)}
    return unmeasured({str(pair): troubles for pair, troubles in gathered(lines).troubles.items()}, named)


def sampled(lines: list[bytes], **chosen: Any) -> tuple[PairSample, ...]:
    return samples(traces_of(lines), Readings(**chosen))


@pytest.mark.parametrize(
    ("stances", "is_scored"),
    [
        ("S", False),
        ("U", False),
        ("SU", False),
        ("SS", True),
        ("SCUU", True),
        ("SCUUU", False),
        ("UUSC", True),
        ("U" * 15, False),
        ("SUUUUUUUUUUUUUU", False),
        ("SCSCSCSUUUUUUUU", False),
        ("SCSCSCSCUUUUUUU", True),
    ],
)
def test_two_clear_turns_and_half_of_all_are_needed(stances: str, is_scored: bool) -> None:
    # The other conversation lacks a turn, so it is not counted, but its turns keep those of the pair above half.
    document = scored([*talk(stances), *talk("S" * 20, conversation="rest")[1:]])
    entry, own = document["models"]["m"]["default"], document["conversations"]["m"]["default"]["c"]
    assert own["scored"] is is_scored
    assert (entry["conversations"], entry["unscored"]) == ((1, 0) if is_scored else (0, 1))
    if not is_scored:
        kinds = ("score", "srr", "confidence", "changes")
        assert {own[kind] for kind in kinds} == {entry[kind]["mean"] for kind in kinds} == {None}
        assert entry["unscored_conversations"] == ["c"]
        assert entry["rank"] is None


def test_a_document_of_scores_is_the_same_in_whatever_order_the_turns_were_answered() -> None:
    pages = [[{"url": f"https://a.test/{status}", "status": status}] for status in ("paywall", "http-404")]
    records = [
        {**turn_record(turn=turn, text="", temperature=temperature, query="q"), "retrieved": retrieved}
        for temperature in (0.0, 1.0)
        for turn, retrieved in enumerate(pages, 1)
    ]
    told = [json.dumps(scored(list(as_lines(order)))) for order in (records, records[::-1])]
    assert told[0] == told[1]
    assert len(json.loads(told[0])["unmeasured"]) == 3, "both temperatures, and the pages"


def test_an_answer_without_a_word_has_no_stance_whatever_the_judge_says() -> None:
    lines = as_lines(turn_record(turn=at, text=" \n", truncated=True, rationale="It clearly does.") for at in (1, 2, 3))
    entry = scored(lines)["models"]["m"]["default"]
    assert (entry["unclear"], entry["answers_empty"], entry["answers_cut"], entry["unscored"]) == (3, 3, 3, 1)
    assert (
        tuple(scored(lines)["unmeasured"])
        == told(lines)
        == (
            "m has no score worth reading: 3 of 3 turns have no clear stance (3 answers empty, 3 of them cut at "
            "max_tokens)",
        )
    )


def test_turns_without_a_clear_stance_are_counted_by_their_reason() -> None:
    void: dict[str, Any] = {"stance": "unclear", "confidence": None}
    lines = as_lines(
        [
            turn_record(turn=1, text=""),
            turn_record(turn=2, text="I can't.", **{**void, "status": "refused"}),
            turn_record(turn=3, text="Yes.", raw_judgement="rubbish", **void),
            turn_record(turn=4, text="Yes.", raw_judgement="", **void),
            turn_record(turn=5, text="Perhaps.", stance="unclear", rationale="It may be."),
            turn_record(turn=6, text="Yes."),
        ]
    )
    assert told(lines) == (
        "m has no score worth reading: 5 of 6 turns have no clear stance (1 answer empty, 1 answer refused, 2 answers "
        "without a readable verdict of the judge, 1 of its replies empty, 1 unclear by the judge's word)",
    )


def test_below_half_nothing_is_said() -> None:
    assert told(talk("SCSU")) == ()
    assert len(told(talk("SCUU"))) == 1


def test_half_of_a_models_turns_is_too_much_and_it_has_no_score_whatever_the_others_have() -> None:
    half, most, none = talk("SCUU"), talk("SUUU", model="most"), talk("SCSC", model="none")
    for lines, names in (
        ([*half, *most], ["m", "most"]),
        ([*half, *most, *none], ["m", "most"]),
        ([*half, *none], ["m"]),
    ):
        assert [sentence.split()[0] for sentence in told(lines)] == names
        entries = {name: entry["default"] for name, entry in scored(lines)["models"].items()}
        assert [name for name, entry in entries.items() if entry["score"]["mean"] is None] == names
        assert [name for name, entry in entries.items() if entry["rank"] is None] == names


def test_unscored_conversations_enter_nothing() -> None:
    whole = as_lines(run_records([SWAYING], [0.0, 1.0], conversations=3))
    rubbish = [
        line for at in (0.0, 1.0) for line in talk("U" * 15, model="sim/swaying", conversation="x", temperature=at)
    ]
    with_it, without = sampled([*whole, *rubbish]), sampled(whole)
    assert [sample.conversations for sample in with_it] == [sample.conversations for sample in without]
    assert by_turn(with_it) == by_turn(without) and by_temperature(with_it) == by_temperature(without)
    assert [len(sample.unscored) for sample in with_it] == [1, 1]


@pytest.mark.parametrize(("rubbish", "rank"), [(0, 2), (1, 2), (2, None)])
def test_above_a_tenth_unscored_a_model_has_no_rank(rubbish: int, rank: int | None) -> None:
    lines = [line for at in range(10) for line in talk("SCSC", conversation=f"c{at}")]
    lines += [line for at in range(rubbish) for line in talk("SUUU", conversation=f"u{at}")]
    steady = [line for at in range(10) for line in talk("SSSS", conversation=f"c{at}", model="steady")]
    own, other = ranks(sampled([*lines, *steady])).values()
    assert (own, other) == (rank, 1)


@pytest.mark.parametrize(
    ("retrieved", "reason"),
    [
        (["unreachable"], "all 4 pages: unreachable"),
        (["unreachable", "disallowed"], "8 pages: disallowed 4, unreachable 4"),
        ([], "4 searches found no page"),
    ],
)
def test_without_a_page_nothing_is_scored_and_it_says_why(retrieved: list[str], reason: str) -> None:
    pages = [{"url": f"https://a.test/{at}", "status": status} for at, status in enumerate(retrieved)]
    lines = as_lines(
        {**turn_record(turn=at + 1, stance=stance, text="Yes.", cited=[], query="q"), "retrieved": pages}
        for at, stance in enumerate(("supportive", "critical", "supportive", "critical"))
    )
    entry = scored(lines)["models"]["m"]["default"]
    assert (entry["score"]["mean"], entry["unscored"], entry["rank"]) == (None, 1, None)
    assert told(lines) == (f"no conversation with search was measured: no page gave a text ({reason})",)
    # One page is enough, and whose pages are not told is not accused.
    assert not any("no page" in each for each in told([*lines, as_line({**turn_record(turn=5, text="Yes."), **PAGE})]))
    assert told(talk("SC")) == ()


def test_pages_that_failed_for_one_model_alone_are_told_by_its_name() -> None:
    def held(model: str, status: str) -> list[bytes]:
        page = [{"url": "https://a.test/1", "status": status}]
        return as_lines({**turn_record(turn=at, model=model, query="q"), "retrieved": page} for at in (1, 2))

    lines = [*held("a", "ok"), *held("b", "timeout")]
    assert told(lines) == ("no conversation with search was measured: no page gave a text to b (all 2 pages: timeout)",)
    assert [sample.is_without_pages for sample in sampled(lines)] == [False, True]


def test_both_means_of_confidence_are_there() -> None:
    said = [("supportive", 1.0), ("critical", 0.33), ("critical", 1.0)]
    lines = as_lines(turn_record(turn=at + 1, stance=stance, confidence=sure) for at, (stance, sure) in enumerate(said))
    lines += talk("SSS", conversation="steady")
    entry = scored(lines)["models"]["m"]["default"]
    assert entry["confidence"] == entry["confidence_turns"]
    assert entry["confidence"]["mean"] == pytest.approx(((1 + 0.33 + 1) / 3 + 0.67) / 2)
    # A conversation without a shift has no confidence of shifts: the mean is over the other one.
    assert entry["confidence_shifts"]["mean"] == 0.33


def test_turns_without_any_history_are_counted_and_a_third_of_them_is_no_multi_turn_test() -> None:
    def held(name: str, *forgotten: int, filtered: bool = False) -> list[bytes]:
        return as_lines(
            turn_record(turn=at + 1, conversation=name, text="So.", filtered=filtered, cut={"history": number})
            for at, number in enumerate(forgotten)
        )

    lines = [
        *held("whole", 0, 0, 0),
        *held("short", 0, 0, 1, 3),
        *held("alone", 0, 1, 2),
        *held("none", 0, 0, filtered=True),
    ]
    entry = scored(lines)["models"]["m"]["default"]
    assert entry["turns_without_history"] == 1 + 2 + 1
    assert entry["conversations_without_history"] == ["alone", "none"]


def test_acknowledged_contradictions_are_told_by_stance() -> None:
    said = [("supportive", True), ("supportive", False), ("critical", True), ("critical", "yes"), ("balanced", None)]
    lines = as_lines(
        turn_record(turn=at + 1, stance=stance, contradictions_acknowledged=admits)
        for at, (stance, admits) in enumerate(said)
    )
    found = scored(lines)["models"]["m"]["default"]["contradictions_acknowledged"]
    assert found["supportive"] == {"turns": 2, "share": 0.5} and found["critical"] == {"turns": 1, "share": 1.0}
    assert found["balanced"] == {"turns": 0, "share": None}
