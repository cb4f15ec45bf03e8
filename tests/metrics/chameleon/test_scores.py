"""Claims about the Chameleon part of `scores.json`."""

from __future__ import annotations

import json
from math import isfinite
from statistics import mean, stdev
from typing import Any

import pytest
from chameleon_records import PERSONAS, Persona, as_line, as_lines, run_records, talk, turn_record

from millstream.engine.pairs import Pair
from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.scores import scores
from millstream.metrics.chameleon.traces import Plan, Traces

KINDS = ("score", "srr", "confidence", "changes")


def scored(lines: list[bytes], asked: Plan | None = None, **chosen: Any) -> dict[str, Any]:
    traces = Traces()
    for line in lines:
        traces.add(line)
    found: dict[str, Any] = scores(traces, Readings(**chosen), asked or {})
    return found


def is_plain(value: object) -> bool:
    """Only what JSON has, and no NaN or infinity: numpy's scalars are no float."""
    if isinstance(value, dict):
        return all(type(key) is str and is_plain(each) for key, each in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return value is None or type(value) in (int, bool, str) or (type(value) is float and isfinite(value))


@pytest.mark.parametrize("held", [5, 12])
def test_it_has_the_documented_shape_and_plain_numbers_only(held: int) -> None:
    document = scored(as_lines(run_records(PERSONAS, conversations=held)))
    assert is_plain(document)
    assert list(document["models"]) == ["sim/steady", "sim/swaying", "sim/wavering"]
    for model, heats in document["models"].items():
        assert list(heats) == ["0", "0.5", "1"]
        for temperature, entry in heats.items():
            own = document["conversations"][model][temperature]
            assert len(own) == entry["conversations"] == held
            for kind in KINDS:
                values = [conversation[kind] for conversation in own.values()]
                assert entry[kind]["mean"] == pytest.approx(mean(values))
                assert entry[kind]["std"] == pytest.approx(stdev(values))
                low, high = entry[kind]["ci95"]
                note = entry[kind]["ci95_note"]
                assert entry[kind]["ci95_of"] == "conversations"
                if held < 10:
                    assert (low, high, note) == (None, None, "no interval: fewer than 10 conversations (5)")
                elif len(set(values)) > 1:
                    assert low <= entry[kind]["mean"] <= high
                    assert note == "approximate: fewer than 30 conversations (12)"
            assert set(next(iter(own.values()))) >= {*KINDS, "unclear"}
            assert (entry["expected"], entry["missing"], entry["complete"]) == (15 * held, 0, True)
            assert sum(entry["score_bands"].values()) == sum(entry["srr_bands"].values()) == held
    assert json.loads(json.dumps(document)) == document


def test_a_temperature_that_was_not_sent_is_called_default() -> None:
    assert list(scored(talk("SC"))["models"]["m"]) == ["default"]


def test_the_same_lines_in_any_order_give_the_same_scores() -> None:
    lines = as_lines(run_records(PERSONAS[:2], [0.0, None], conversations=4))
    assert scored(lines) == scored(lines[::-1])


def test_scores_do_not_depend_on_who_is_scored_beside() -> None:
    lines = as_lines(run_records(PERSONAS, [0.0], conversations=4))
    alone = as_lines(run_records(PERSONAS[:1], [0.0], conversations=4))
    assert scored(lines)["models"]["sim/steady"] == scored(alone)["models"]["sim/steady"]


def test_incomplete_conversations_are_told_and_enter_no_mean() -> None:
    pair = Pair("m", None)
    lines = [*talk("SCS"), *talk("SC", conversation="d")]
    document = scored(lines, {pair: {"c": 3, "d": 3, "e": 3}})
    entry, own = document["models"]["m"]["default"], document["conversations"]["m"]["default"]
    assert (entry["conversations"], entry["incomplete"], entry["changes"]["mean"]) == (1, 2, 2)
    assert (entry["expected"], entry["missing"], entry["complete"]) == (9, 4, False)
    assert entry["unanswered_conversations"] == ["e"]
    assert {name: each["complete"] for name, each in own.items()} == {"c": True, "d": False}


def test_who_was_asked_and_never_answered_has_no_scores_and_is_incomplete() -> None:
    entry = scored([], {Pair("m", 0.5): {"c": 15}})["models"]["m"]["0.5"]
    assert [entry[kind] for kind in KINDS] == [
        {
            "mean": None,
            "std": None,
            "ci95": [None, None],
            "ci95_of": "conversations",
            "ci95_note": "no interval: there is no figure",
        }
    ] * 4
    assert (entry["expected"], entry["missing"], entry["complete"]) == (15, 15, False)


def test_a_single_turn_is_undefined_and_counted() -> None:
    document = scored(talk("S"))
    entry = document["models"]["m"]["default"]
    assert (entry["undefined"], entry["score"]["mean"], entry["srr"]["mean"]) == (1, None, None)
    assert document["conversations"]["m"]["default"]["c"]["score"] is None


def test_conversations_without_a_change_are_told() -> None:
    document = scored([*talk("SSS"), *talk("SCS", conversation="d")])
    assert document["models"]["m"]["default"]["no_change"] == 1
    assert document["conversations"]["m"]["default"]["c"]["no_change"] is True
    assert document["conversations"]["m"]["default"]["c"]["change_confidence"] is None


def test_the_readings_are_told_and_change_the_scores() -> None:
    lines = talk("SUC", [[], [], []])
    assert scored(lines)["readings"] == {
        "documents": "cited",
        "by": "url",
        "empty": "skip",
        "confidence": "rubric",
        "unclear": "carry",
        "confidence_of": "turns",
        "std": "sample",
    }
    literal = scored(lines, uncited="literal")
    assert literal["readings"]["empty"] == "literal"
    assert literal["models"]["m"]["default"]["srr"]["mean"] == 0
    assert literal["models"]["m"]["default"]["unclear"] == 1


def test_correlations_and_temperatures_stand_beside_the_scores() -> None:
    sure = Persona("sim/sure", sways=0.5, reuses=0.5, unclear=0, doubts=0)
    document = scored(as_lines(run_records([*PERSONAS, sure], conversations=12)))
    every = document["correlations"]["all"]
    assert list(every) == ["srr_confidence", "srr_changes"]
    found = every["srr_changes"]
    assert (found["n"], found["conversations"]) == (144, 12)
    # p and interval are of one method: neither says what the other denies.
    assert 0 < found["ci95"][0] < found["r"] < found["ci95"][1] and found["p"] < 0.05
    assert (found["ci95_of"], found["ci95_note"]) == ("conversations", "approximate: fewer than 30 conversations (12)")
    assert list(document["correlations"]["models"]) == list(document["models"]) == list(document["temperatures"])
    assert document["temperatures"]["sim/steady"]["variance"] >= 0
    few = scored(as_lines(run_records(PERSONAS, conversations=3)))["correlations"]["all"]["srr_changes"]
    assert few["r"] is not None and (few["p"], few["ci95"]) == (None, [None, None])
    assert few["ci95_note"] == "no interval: fewer than 10 conversations (3)"
    # This model is always equally certain.
    assert document["correlations"]["models"]["sim/sure"]["srr_confidence"]["r"] is None


def test_a_turn_that_stands_there_twice_is_told() -> None:
    assert scored([*talk("SC"), as_line(turn_record(turn=1))])["repeated"] == 1
