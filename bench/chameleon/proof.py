"""The proof of a Chameleon run: manifest, journals, data set and scores against each other.

Every line intact, every turn of every conversation once for each pair and none after one that failed, its question
the data set's, nothing unknown, the digests and the scores as recomputed. Finds and tells; mends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine.journal import read_lines
from ...engine.pairs import Pair
from ...engine.proof import Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.run_folder import FAILURES, RECORDS
from ...metrics.chameleon.scores import scores as scores_of
from ...metrics.chameleon.traces import Traces
from .asked import asked_of, readings_of_run
from .dataset import Dataset
from .order import places_in_order
from .records import Record
from .turn import untrue_fields

_Seen = dict[Pair, dict[str, set[int]]]


def prove(folder: Path, manifest: Mapping[str, Any], dataset: Dataset | None) -> Proof:
    """Look at everything. `dataset` None: it can't be reached, so neither its digest nor the questions are compared."""
    proof = proof_of(manifest, None if dataset is None else dataset.digest)
    specification = manifest["specification"]
    questions = _questions(specification, dataset)
    asked = asked_of(specification)
    answered: _Seen = {pair: {} for pair in asked}
    failed: _Seen = {pair: {} for pair in asked}
    for name, seen in ((RECORDS, (answered, failed)), (FAILURES, (failed, answered))):
        for here, record in whole_records(folder, name, Record, "Chameleon", proof):
            _look_at_turn(here, record, asked, seen, questions, proof)
            untrue = untrue_fields(record) if record.stance is not None else []
            if untrue:
                proof.add(f"{here}: {', '.join(untrue)}: not what the text and the rationale in it give")
    _look_for_gaps(asked, answered, failed, proof)
    compare_counts(manifest, proof)
    compare_scores(folder, manifest, "chameleon", lambda: _scores(folder, manifest), proof)
    return proof


def _questions(specification: Mapping[str, Any], dataset: Dataset | None) -> Mapping[str, tuple[str, ...]] | None:
    """Every conversation's questions in the order asked; None: not those of the run."""
    if dataset is None or dataset.digest != specification.get("data"):
        return None
    return {
        each.id: tuple(
            each.questions[place]
            for place in places_in_order(
                each, specification["turns"], specification["order"], specification["seed"] or 0
            )
        )
        for each in dataset.whole or dataset.conversations
    }


def _look_at_turn(
    here: str,
    record: Record,
    asked: Mapping[Pair, Mapping[str, int]],
    seen: tuple[_Seen, _Seen],
    questions: Mapping[str, tuple[str, ...]] | None,
    proof: Proof,
) -> None:
    """It is known, and there once. `seen` holds its journal's turns, and the other's."""
    pair, conversation, turn = record.pair, record.conversation, record.turn
    if pair not in asked:
        proof.add(f"{here}: {pair} is not in this run")
        return
    if turn > asked[pair].get(conversation, 0) or record.id != f"{conversation}/{turn}":
        proof.add(f"{here}: turn {record.id} is not in this run")
        return
    if any(turn in each[pair].get(conversation, ()) for each in seen):
        proof.add(f"{here}: turn {record.id} of {pair} stands there twice")
        return
    seen[0][pair].setdefault(conversation, set()).add(turn)
    if questions is not None and record.question != questions.get(conversation, ())[turn - 1]:
        proof.add(f"{here}: turn {record.id} has another question than the data set")


def _look_for_gaps(asked: Mapping[Pair, Mapping[str, int]], answered: _Seen, failed: _Seen, proof: Proof) -> None:
    for pair, conversations in asked.items():
        for conversation, turns in conversations.items():
            done = answered[pair].get(conversation, set())
            lost = failed[pair].get(conversation, set())
            missing = turns - len(done) - len(lost)
            if lost:
                later = sum(turn > min(lost) for turn in done | lost)
                if later:
                    proof.add(f"{conversation} of {pair}: turn {min(lost)} failed, and {later} later turns were asked")
                proof.held += missing
            else:
                proof.pending += missing


def _scores(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    traces = Traces()
    for line in read_lines(folder / RECORDS):
        traces.add(line)
    return scores_of(traces, readings_of_run(manifest), asked_of(manifest["specification"]))
