from __future__ import annotations

import json
from typing import Any

import pytest
from answered_run import calls, row

from millstream.bench.millstone.dataset import IssueDataset
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.options import GridOptions
from millstream.bench.millstone.records import RecordError, read, record
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.pairs import Pair

# The fields of DESIGN.md's "Files of a run" without those that stand only on some lines.
FIELDS = {
    "id", "issue", "template", "config", "trial", "orientation", "arguments", "text", "letter", "stance", "key",
    "model", "temperature", "effort", "status", "truncated", "usage", "cost", "cached", "attempts", "maybe_billed",
    "latency_ms", "answer_id", "served", "fingerprint", "tier", "router",
}  # fmt: skip


@pytest.fixture
def call(tiny: IssueDataset) -> Call:
    """A call of a template whose orientation is con: A means con."""
    return next(
        call
        for call in calls(Grid(tiny), Pair("openai/gpt-4o", 0.5))
        if call.tag.template == 4 and call.tag.config == "clear-pro-1"
    )


def answered(call: Call, text: str, **more: Any) -> Outcome:
    return Outcome(
        call,
        Reply(text, Usage(120, 5), "stop", served="gpt-4o-2024-11-20", fingerprint="fp_1", tier="flex", **more),
        key="ab" * 32,
        cached=True,
        attempts=2,
        maybe_billed=1,
        cost=0.25,
        latency_ms=12.5,
    )


def test_an_answer_keeps_every_documented_field(call: Call) -> None:
    line = row(answered(call, "position <<A>>"), "paper")
    assert b"\n" not in line
    assert json.loads(line) == {
        "id": "bells/4/clear-pro-1/0",
        "issue": "bells",
        "template": 4,
        "config": "clear-pro-1",
        "trial": 0,
        "orientation": "con",
        "arguments": list(call.tag.arguments),
        "text": "position <<A>>",
        "letter": "A",
        "stance": "con",
        "key": "ab" * 32,
        "model": "openai/gpt-4o",
        "temperature": 0.5,
        "effort": None,
        "status": "ok",
        "truncated": False,
        "usage": {"input": 120, "output": 5},
        "cost": 0.25,
        "cached": True,
        "attempts": 2,
        "maybe_billed": 1,
        "latency_ms": 12.5,
        "answer_id": None,
        "served": "gpt-4o-2024-11-20",
        "fingerprint": "fp_1",
        "tier": "flex",
        "router": None,
    }


def test_a_refusal_is_other_whatever_its_text_says(call: Call) -> None:
    line = json.loads(row(answered(call, "position <<A>>", refused=True), "paper"))
    assert (line["status"], line["letter"], line["stance"]) == ("refused", None, "other")
    assert line["text"] == "position <<A>>"


def test_an_answer_without_a_letter_is_other(call: Call) -> None:
    line = json.loads(row(answered(call, "It depends."), "paper"))
    assert (line["status"], line["letter"], line["stance"]) == ("ok", None, "other")


def test_the_reading_decides_the_letter(call: Call) -> None:
    text = "My position against it stands."
    assert json.loads(row(answered(call, text), "paper"))["letter"] == "A"
    assert json.loads(row(answered(call, text), "careful"))["letter"] is None


def test_a_failure_has_neither_text_nor_stance_but_its_error(call: Call) -> None:
    outcome = Outcome(call, failure=Failure("timeout", "no answer within 300 s: raise timeout_s"), attempts=6)
    line = json.loads(row(outcome, "paper"))
    assert line.keys() == FIELDS | {"error"}
    assert (line["status"], line["text"], line["letter"], line["stance"]) == ("timeout", None, None, None)
    assert line["error"] == "no answer within 300 s: raise timeout_s"
    assert line["usage"] is None


def test_raw_bytes_stand_only_where_the_text_was_repaired(call: Call) -> None:
    line = json.loads(row(answered(call, "caf\ufffd", raw=b"caf\xe9"), "paper"))
    assert line.keys() == FIELDS | {"raw_b64"}
    assert line["raw_b64"] == "Y2Fm6Q=="


def test_truncated_is_a_finish_for_length(call: Call) -> None:
    assert record(Outcome(call, Reply("position <<", finish_reason="length")), "paper").truncated
    assert not record(Outcome(call, Reply("position <<B>>", finish_reason="stop")), "paper").truncated


def test_what_is_written_is_read_back_the_same(tiny: IssueDataset) -> None:
    outcomes = [
        answered(call, "\u2028 <<B>> \x00") for call in calls(Grid(tiny, GridOptions(trials=1)), Pair("sim/x", None))
    ]
    outcomes.append(Outcome(outcomes[0].call, failure=Failure("empty", "no choices")))
    outcomes.append(answered(outcomes[1].call, "caf\ufffd", raw=b"caf\xe9"))
    written = [record(outcome, "paper") for outcome in outcomes]
    assert list(read(row(outcome, "paper") for outcome in outcomes)) == written
    assert list(read(row(outcome, "paper").decode() + "\n" for outcome in outcomes)) == written


LEAST = {
    "id": "tea/1/baseline-1/3",
    "issue": "tea",
    "template": 1,
    "config": "baseline-1",
    "trial": 3,
    "stance": "pro",
    "model": "lab/x",
}


def test_records_of_another_program_need_only_what_scores_need() -> None:
    other = {**LEAST, "mood": {"any": ["thing"]}, "crc": 7, "temperature": 1}
    (found,) = read(["\n", json.dumps(other) + "\n", ""])
    assert (found.id, found.stance, found.status, found.temperature) == ("tea/1/baseline-1/3", "pro", "ok", 1.0)
    assert (found.arguments, found.letter, found.cost, found.attempts) == ((), None, None, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"template": 7}, r"Expected `int` <= 6 - at `\$.template`"),
        ({"template": "1"}, r"Expected `int`, got `str` - at `\$.template`"),
        ({"trial": -1}, r"Expected `int` >= 0 - at `\$.trial`"),
        ({"stance": "Pro"}, r"Invalid enum value 'Pro' - at `\$.stance`"),
        ({"stance": None}, "stance: expected pro, con or other with status ok, got null"),
        ({"status": "timeout"}, "stance: expected null, since a failure has no stance with status timeout, got pro"),
        ({"status": "fine"}, "status: expected one of ok, refused, connect, .*, got 'fine'"),
        ({"config": "balanced"}, "config: expected one of baseline, .*, got 'balanced'"),
    ],
)
def test_a_bad_record_is_named_by_its_line(change: dict[str, Any], message: str) -> None:
    lines = [json.dumps(LEAST), "", json.dumps({**LEAST, **change})]
    with pytest.raises(RecordError, match=f"^theirs: line 3: {message}"):
        list(read(lines, "theirs"))


@pytest.mark.parametrize("field", sorted(LEAST))
def test_a_record_without_a_field_that_scores_need_is_refused(field: str) -> None:
    lines = [json.dumps({name: value for name, value in LEAST.items() if name != field})]
    with pytest.raises(RecordError, match=f"line 1: Object missing required field `{field}`"):
        list(read(lines))


@pytest.mark.parametrize("line", [b"{", b"[]", b'"\xff"', b'{"id": \xff}', "\ud800", b"null"])
def test_a_line_that_is_no_json_object_is_refused_by_its_number(line: str | bytes) -> None:
    with pytest.raises(RecordError, match="records: line 2: "):
        list(read([json.dumps(LEAST), line]))
