"""The proof of a Chameleon run: manifest, journals, data set and scores against each other.

Every line intact, every turn of every conversation once for each pair and none after one that failed, its question
the data set's, nothing unknown, the digests and the scores as recomputed. Finds and tells; mends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct, field

from ...engine.journal import has_torn_tail, is_intact, read_lines
from ...engine.pairs import Pair
from ...engine.run_folder import FAILURES, RECORDS, manifest_hash, specification_hash
from ...metrics.chameleon.readings import Readings
from ...metrics.chameleon.scores import scores as scores_of
from ...metrics.chameleon.traces import Traces
from .asked import asked_of
from .dataset import Dataset
from .order import places_in_order
from .records import Record
from .turn import untrue_fields

WRONGS_KEPT = 1_000
_Seen = dict[Pair, dict[str, set[int]]]


class Proof(Struct):
    """What was looked at and what is wrong; `wrong` keeps the first thousand. `held` are turns that nobody asks before
    the failed one before them is tried again."""

    records: int = 0
    failures: int = 0
    pending: int = 0
    held: int = 0
    torn: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wrongs: int = 0
    unproven: list[str] = field(default_factory=list)

    def add(self, what: str) -> None:
        self.wrongs += 1
        if len(self.wrong) < WRONGS_KEPT:
            self.wrong.append(what)


def prove(folder: Path, manifest: Mapping[str, Any], dataset: Dataset | None) -> Proof:
    """Look at everything. `dataset` None: it can't be reached, so neither its digest nor the questions are compared."""
    proof = Proof()
    specification = manifest["specification"]
    if specification_hash(specification) != manifest.get("specification_hash"):
        proof.add("manifest.json: the specification's hash is not the one noted beside it: one of both was changed")
    if manifest_hash(manifest) != manifest.get("manifest_hash"):
        proof.add("manifest.json: its hash is not the one noted in it: something in it was changed")
    questions = _questions(specification, dataset, proof)
    asked = asked_of(specification)
    answered: _Seen = {pair: {} for pair in asked}
    failed: _Seen = {pair: {} for pair in asked}
    proof.records = _look_at(folder, RECORDS, asked, (answered, failed), questions, proof)
    proof.failures = _look_at(folder, FAILURES, asked, (failed, answered), questions, proof)
    _look_for_gaps(asked, answered, failed, proof)
    _compare_counts(manifest, proof)
    _compare_scores(folder, manifest, proof)
    return proof


def _questions(
    specification: Mapping[str, Any], dataset: Dataset | None, proof: Proof
) -> Mapping[str, tuple[str, ...]] | None:
    """Every conversation's questions in the order asked."""
    if dataset is None:
        proof.unproven.append("data set: not reachable, so its digest was not compared")
        return None
    if dataset.digest != specification.get("data"):
        proof.add(
            f"data set: its digest is {dataset.digest[:12]}…, the run's was {str(specification.get('data'))[:12]}…"
        )
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


def _look_at(
    folder: Path,
    name: str,
    asked: Mapping[Pair, Mapping[str, int]],
    seen: tuple[_Seen, _Seen],
    questions: Mapping[str, tuple[str, ...]] | None,
    proof: Proof,
) -> int:
    """One journal: each line whole, known, and there once. `seen` holds this journal's turns, and the other's."""
    path = folder / name
    decode = msgspec.json.Decoder(Record).decode
    count = 0
    for number, line in enumerate(read_lines(path), 1):
        count += 1
        here = f"{name} line {number}"
        if not is_intact(line, must_be_sealed=True):
            proof.add(f"{here}: damaged: its checksum is missing or wrong")
            continue
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            proof.add(f"{here}: no record of Chameleon: {error}")
            continue
        if (record.stance is None) != (name == FAILURES):
            proof.add(f"{here}: status {record.status} does not belong in this file")
        _look_at_turn(here, record, asked, seen, questions, proof)
        untrue = untrue_fields(record) if record.stance is not None else []
        if untrue:
            proof.add(f"{here}: {', '.join(untrue)}: not what the text and the rationale in it give")
    if has_torn_tail(path):
        proof.torn.append(f"{name}: its last line is torn, as a kill leaves it; the next start sets it aside")
    return count


def _look_at_turn(
    here: str,
    record: Record,
    asked: Mapping[Pair, Mapping[str, int]],
    seen: tuple[_Seen, _Seen],
    questions: Mapping[str, tuple[str, ...]] | None,
    proof: Proof,
) -> None:
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


def _compare_counts(manifest: Mapping[str, Any], proof: Proof) -> None:
    counts = manifest.get("counts")
    if manifest.get("ended") is None or not counts:
        proof.unproven.append("counts: the run has not ended, so the manifest has none")
        return
    noted = sum(row["ok"] + row["refused"] for row in counts), sum(sum(row["failed"].values()) for row in counts)
    if noted != (proof.records, proof.failures):
        proof.add(
            f"manifest.json: counts {noted[0]:,} records and {noted[1]:,} failures; the files hold "
            f"{proof.records:,} and {proof.failures:,}"
        )


def _compare_scores(folder: Path, manifest: Mapping[str, Any], proof: Proof) -> None:
    path = folder / "scores.json"
    if not path.exists():
        proof.unproven.append("scores.json: not there, so nothing to compare")
        return
    if manifest.get("ended") is None:
        # Written when an earlier part of the run ended, or by `score` meanwhile: the records have grown since.
        proof.unproven.append("scores.json: the run has not ended, so its scores are of an earlier state")
        return
    specification = manifest["specification"]
    traces = Traces()
    try:
        noted = orjson.loads(path.read_bytes())
        for line in read_lines(folder / RECORDS):
            traces.add(line)
        readings = Readings(**specification["readings"])
    except (orjson.JSONDecodeError, ValueError, TypeError) as error:
        proof.add(f"scores.json: can't be compared: {error}")
        return
    computed = orjson.loads(orjson.dumps(scores_of(traces, readings, asked_of(specification))))
    if noted != computed:
        models = computed["chameleon"]["models"]
        theirs = noted.get("chameleon", {}).get("models", {}) if isinstance(noted, dict) else {}
        differing = [model for model in models.keys() | theirs.keys() if models.get(model) != theirs.get(model)]
        proof.add(f"scores.json: not what the records give, for {', '.join(sorted(differing)) or 'the whole file'}")
