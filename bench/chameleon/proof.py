"""Verifies a Chameleon run: compares manifest, journals, data set and scores.

Every line must be intact; every turn must occur once for each pair, with the data set's question, and none after a
failed one; digests and scores must equal those computed again. Reports, repairs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine.runs.journal import read_lines
from ...engine.runs.proof import Proof, compare_counts, compare_scores, proof_of, whole_records
from ...engine.runs.run_folder import FAILURES, RECORDS
from ...metrics.chameleon.scores import scores as scores_of
from ...metrics.chameleon.traces import Traces
from ..evaluation.item import numbered_ids
from ..evaluation.proof import Roll
from ..evaluation.reads import reads_of
from ..evaluation.served import rows_in
from .dataset import ConversationSet
from .order import places_in_order
from .records import Record
from .run_spec import asked_of, readings_of_run
from .turn import untrue_fields


def prove(folder: Path, manifest: Mapping[str, Any], dataset: ConversationSet | None) -> Proof:
    """Verifies a run and returns the findings. `dataset` None: it is not available, so neither its digest nor the
    questions are compared."""
    proof = proof_of(manifest, None if dataset is None else dataset.digest)
    specification = manifest["specification"]
    questions = _questions(specification, dataset)
    roll = Roll(asked_of(specification), proof, "turn", numbered_ids)
    for name in (RECORDS, FAILURES):
        for here, record in whole_records(folder, name, Record, "Chameleon", proof):
            turn = record.id
            if turn != f"{record.conversation}/{record.turn}":
                turn += f", of {record.conversation} with the number {record.turn},"
            is_known = roll.add(here, record.pair, record.conversation, turn, is_failure=name == FAILURES)
            if is_known and questions is not None and not _is_asked(record, questions):
                proof.add(f"{here}: turn {record.id} has another question than the data set")
            untrue = untrue_fields(record) if record.stance is not None else []
            if untrue:
                proof.add(f"{here}: {', '.join(untrue)}: not what the text and the rationale in it give")
    roll.close()
    compare_counts(manifest, proof)
    compare_scores(folder, manifest, "chameleon", lambda: _scores(folder, manifest), proof)
    return proof


def _questions(
    specification: Mapping[str, Any], dataset: ConversationSet | None
) -> Mapping[str, tuple[str, ...]] | None:
    """Returns each conversation's questions by its id, in the order asked; None if the data set is not the run's."""
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


def _is_asked(record: Record, questions: Mapping[str, tuple[str, ...]]) -> bool:
    return record.question == questions.get(record.conversation, ())[record.turn - 1]


def _scores(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    traces, rows = Traces(reads_of("chameleon", manifest)), rows_in(folder, manifest)
    for line in rows.lines(read_lines(folder / RECORDS)):
        traces.add(line)
    asked = asked_of(rows.specification(manifest["specification"]))
    return rows.scores(scores_of(traces, readings_of_run(manifest), asked, rows.is_ranked))
