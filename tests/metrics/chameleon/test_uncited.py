"""Claims about turns without a source: they are no diversity, and no model is ranked by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from chameleon_records import talk
from conversation_traces import traces_of

from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.sample import ranks, samples
from millstream.metrics.chameleon.scores import scores
from millstream.metrics.chameleon.traces import Traces

PAGES = ["https://a.test/1", "https://b.test/2"]
# Nine and ten changes of stance in 14 steps, as sure as can be: the stances of both invented models.
SWAYS = ("SCSCSCSCSCCCCCC", "SCSCSCSCSCSSSSS")


def model(name: str, uncited: int = 0, sways: Sequence[str] = SWAYS, fresh: int = 0) -> list[bytes]:
    """Ten conversations of 15 turns that cite the same two pages in every turn, but for a new one in each of `fresh`
    turns, and none in the last `uncited` ones."""
    cited = [
        *[PAGES] * (uncited < 15),
        *([f"https://new.test/{at}"] for at in range(fresh)),
        *[PAGES] * (14 - fresh - uncited),
    ]
    return [
        line
        for at in range(10)
        for line in talk(sways[at % 2], [*cited, *[[]] * uncited], model=name, conversation=f"c{at}", confidence=1.0)
    ]


def scored(lines: list[bytes], **chosen: Any) -> dict[str, Any]:
    traces = Traces()
    for line in lines:
        traces.add(line)
    found: dict[str, Any] = scores(traces, Readings(**chosen))
    return found


def entry_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = document["models"][name]["default"]
    return found


def test_a_model_that_cites_nothing_is_unscored_unranked_and_named() -> None:
    document = scored([*model("x/citing"), *model("x/silent", uncited=15)])
    citing, silent = (entry_of(document, name) for name in ("x/citing", "x/silent"))
    assert citing["score"]["mean"] == pytest.approx(0.906, abs=5e-4)
    assert (citing["srr"]["mean"], citing["uncited_turns"], citing["rank"], citing["unscored"]) == (1, 0, 1, 0)
    assert {silent[kind]["mean"] for kind in ("score", "srr", "score_zero", "srr_zero")} == {None}
    assert (silent["uncited_turns"], silent["turns"], silent["rank"], silent["unscored"]) == (150, 150, None, 10)
    assert document["unmeasured"] == [
        "x/silent has no score worth reading: 150 of 150 turns have no source, so their re-use of sources "
        "is unknown (--uncited literal counts them as re-use 0)"
    ]
    assert document["remarks"] == [
        "10 of 10 complete conversations of x/silent are unscored, since too few of their turns have a clear stance "
        "and a source: they enter no mean, figure or correlation, and x/silent has no rank",
        "x/silent: 150 of 150 turns (100.0%) have no source, and are left out of its source re-use rate",
    ]
    assert {each["score"] for each in document["conversations"]["x/silent"]["default"].values()} == {None}


def test_by_the_literal_reading_it_is_0_and_nothing_is_unscored() -> None:
    document = scored([*model("x/citing"), *model("x/silent", uncited=15)], uncited="literal")
    silent = entry_of(document, "x/silent")
    assert silent["score"]["mean"] == silent["score_zero"]["mean"] == pytest.approx(0.698, abs=5e-4)
    assert (silent["srr"]["mean"], silent["rank"], silent["unscored"], document["unmeasured"]) == (0, 1, 0, [])
    assert document["remarks"] == ["x/silent: 150 of 150 turns (100.0%) have no source, and count as re-use 0"]
    assert document["readings"]["empty"] == "literal"


def test_seven_of_fifteen_turns_are_left_out_and_remarked_and_0_for_them_stands_beside() -> None:
    document = scored(model("x/lapsing", uncited=7))
    entry = entry_of(document, "x/lapsing")
    assert (entry["srr"]["mean"], entry["srr_zero"]["mean"], entry["uncited_turns"]) == (1, 0.5, 70)
    assert [entry[kind]["mean"] for kind in ("score", "score_zero")] == pytest.approx([0.906, 0.755], abs=5e-4)
    assert (entry["rank"], entry["conversations"], entry["unscored"], document["unmeasured"]) == (1, 10, 0, [])
    assert document["remarks"] == [
        "x/lapsing: 70 of 150 turns (46.7%) have no source, and are left out of its source re-use rate; with re-use 0 "
        "for them it is 0.500, and the score 0.755"
    ]
    of_one = document["conversations"]["x/lapsing"]["default"]["c0"]
    assert (of_one["uncited_turns"], of_one["srr"], of_one["srr_zero"]) == (7, 1, 0.5)


@pytest.mark.parametrize(("uncited", "is_remarked"), [(1, False), (2, True)])
def test_a_tenth_of_uncited_turns_is_not_remarked(uncited: int, is_remarked: bool) -> None:
    remarks = scored(model("x/lapsing", uncited))["remarks"]
    assert bool(remarks) is is_remarked


@pytest.mark.parametrize(("uncited", "unscored"), [(7, 0), (8, 10)])
def test_more_than_half_of_its_turns_uncited_leave_a_conversation_unscored(uncited: int, unscored: int) -> None:
    document = scored([*model("x/citing"), *model("x/lapsing", uncited)])
    assert entry_of(document, "x/lapsing")["unscored"] == unscored
    assert len(document["unmeasured"]) == (unscored > 0)


def test_half_of_all_turns_uncited_is_too_much_as_with_unclear_ones() -> None:
    even = talk("SCSC", [PAGES, PAGES, [], []])
    assert scored(even)["unmeasured"][0].startswith("m has no score worth reading: 2 of 4 turns have no source")
    assert entry_of(scored(even), "m")["rank"] is None
    assert len(scored([*even, *talk("SCSC", model="n")])["unmeasured"]) == 1


def test_no_score_stands_beside_the_sentence_that_none_is_worth_reading() -> None:
    # Two conversations cite everywhere, two almost nowhere: 18 of 32 turns have no source.
    citing = [line for at in range(2) for line in talk("SCSCSCSC", [PAGES] * 7 + [[]], conversation=f"c{at}")]
    silent = [line for at in range(2) for line in talk("SCSCSCSC", [[]] * 8, conversation=f"s{at}")]
    document = scored([*citing, *silent])
    entry = entry_of(document, "m")
    assert document["unmeasured"][0].startswith("m has no score worth reading: 18 of 32 turns have no source")
    assert {entry[kind]["mean"] for kind in ("score", "srr", "score_zero", "srr_zero")} == {None}
    assert (entry["rank"], entry["conversations"], entry["unscored"]) == (None, 0, 4)
    literal = scored([*citing, *silent], uncited="literal")
    assert (entry_of(literal, "m")["conversations"], literal["unmeasured"]) == (4, [])


def test_where_uncited_turns_decide_the_order_the_models_have_no_rank() -> None:
    lines = [*model("x/steady", sways=["S" * 15] * 2), *model("x/citing", fresh=2), *model("x/lapsing", uncited=7)]
    document = scored(lines)
    means = {
        name: tuple(entry_of(document, name)[kind]["mean"] for kind in ("score", "score_zero"))
        for name in document["models"]
    }
    assert means["x/steady"][0] < means["x/citing"][0] < means["x/lapsing"][0]
    assert means["x/steady"][1] < means["x/lapsing"][1] < means["x/citing"][1]
    assert {name: entry_of(document, name)["rank"] for name in means} == {
        "x/steady": 1,
        "x/citing": None,
        "x/lapsing": None,
    }
    assert document["remarks"][-1] == (
        "x/citing, x/lapsing have no rank: with re-use 0 for turns without a source, their scores have another order"
    )
    # Among pairs that are not compared nothing is turned.
    sampled = samples(traces_of(lines), Readings())
    assert set(ranks(sampled, {sample.pair: str(sample.pair) for sample in sampled}).values()) == {1}


def test_a_row_that_may_have_no_rank_is_not_said_to_lack_it_for_its_sources() -> None:
    # Two models behind one judge: the reason is told by who answered.
    traces = Traces()
    for line in model("x/citing"):
        traces.add(line)
    document = scores(traces, is_ranked=lambda pair: False)
    assert (entry_of(document, "x/citing")["rank"], document["remarks"]) == (None, [])


@pytest.mark.parametrize("by", ["url", "hostname"])
def test_of_retrieved_sources_a_turn_lacks_them_only_if_nothing_was_retrieved(by: str) -> None:
    # Four of fifteen turns retrieved nothing, and no answer cites.
    silent = talk("S" * 15, [[]] * 15, model="x/silent", retrieved=PAGES)
    nothing = [line.replace(b'"url"', b'"was"') for line in talk("S" * 4, [[]] * 4, model="x/silent")]
    lines = [*nothing, *silent[4:]]
    document = scored(lines, sources="retrieved", sources_by=by)
    entry = entry_of(document, "x/silent")
    assert (entry["uncited_turns"], entry["unscored"], entry["srr"]["mean"]) == (4, 0, pytest.approx(10 / 11))
    assert entry["srr_zero"]["mean"] == pytest.approx(10 / 14)
    assert entry_of(scored(lines, sources_by=by), "x/silent")["unscored"] == 1


def test_turns_that_are_unclear_or_without_pages_too_are_told_once() -> None:
    document = scored(talk("UUUU", [[]] * 4, text=""))
    assert document["unmeasured"] == [
        "m has no score worth reading: 4 of 4 turns have no clear stance (4 answers empty)"
    ]
