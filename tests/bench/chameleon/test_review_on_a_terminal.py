"""Two people label turns at real terminals: the conversation before a turn, and their certainty."""

from __future__ import annotations

import json
from pathlib import Path

from chameleon_records import as_lines, turn_record
from typist import at_a_terminal

# One conversation of a single turn and one of two; the judge is as sure of each as its confidence says.
TURNS = (("a", 1, "supportive", 1.0), ("b", 1, "critical", 0.33), ("b", 2, "balanced", 0.67))


def test_two_people_label_turns_with_their_history_and_certainty(tmp_path: Path) -> None:
    records = [
        {
            **turn_record(conversation=name, turn=turn, stance=stance, confidence=confidence),
            "text": f"text of {name}{turn}",
            "question": f"why {name}{turn}?",
            "rationale": "the judge's words",
        }
        for name, turn, stance, confidence in TURNS
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").write_bytes(b"\n".join(as_lines(records)) + b"\n")
    keys = {"a1": "P1", "b1": "C2", "b2": "P"}
    for rater in ("ann", "bob"):
        with at_a_terminal(tmp_path, "--rater", rater, "--json") as person:
            shown = person.await_prompt()
            for count in range(3):
                (turn,) = [name for name in keys if f"\n| text of {name}\r\n" in shown.rpartition("why")[2]]
                earlier = "1 earlier turn:\r\n| Question: why b1?\r\n| \r\n| Answer: text of b1\r\n\r\nwhy b2?"
                assert (earlier in shown) == (turn == "b2")
                if count < 2:
                    shown = person.type(keys[turn])
            told = json.loads(person.leave(f"{keys[turn]}\n\n".encode()))
        assert "judge's words" not in person.seen and "confidence" not in person.seen
    assert (told["labelled"], told["readings"]["judge"]["agree"]) == (3, 2)
    assert told["raters"]["bob"]["certainties"] == [
        {"certainty": 1.0, "labelled": 1, "confidence": 1.0},
        {"certainty": 0.67, "labelled": 1, "confidence": 0.33},
    ]
    (pair,) = told["between_raters"]
    # Both say P, C and P: all agree, chance gives (2 x 2 + 1) / 9, and kappa is 1.
    assert (pair["labelled"], pair["share"], pair["kappa"]) == (3, 1, 1)
