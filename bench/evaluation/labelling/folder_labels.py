"""The comparison of a run's labels, and their proof, from the files of its folder.

Reads labels.jsonl and the records; writes nothing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ....engine.fault import DamagedJournal
from ....engine.runs.journal import has_torn_tail, is_intact, read_lines
from ....engine.runs.proof import Proof
from ..journals import RecordError
from .comparison import LabelComparison, compare
from .label_lines import LABELS, LabelLine, labels_that_count, read_label_lines
from .rater_labels import usable_labels
from .sample import AnswerFile


def compared_in(path: Path, answers: AnswerFile) -> LabelComparison:
    """Returns the agreement of the labels in a file. `answers` are those of the same run."""
    lines = labels_that_count(read_label_lines(path))
    entries = answers.find(list(dict.fromkeys(line.key for line in lines)))
    return compare(usable_labels(lines, entries), answers.sizes())


def prove_labels(folder: Path, answers: AnswerFile, proof: Proof) -> None:
    """Checks every line of a run's labels.jsonl: its checksum, that the records hold its answer, and that the label is
    one that can be given. Adds what is wrong to the proof."""
    decode = msgspec.json.Decoder(LabelLine).decode
    found: dict[str, LabelLine] = {}
    for number, data in enumerate(read_lines(folder / LABELS), 1):
        here = f"{LABELS} line {number}"
        if not is_intact(data, must_be_sealed=True):
            proof.add(f"{here}: damaged: its checksum is missing or wrong")
            continue
        try:
            found[here] = decode(data)
        except (msgspec.MsgspecError, UnicodeError) as error:
            proof.add(f"{here}: no label: {error}")
    if has_torn_tail(folder / LABELS):
        proof.torn.append(f"{LABELS}: its last line is torn, as a kill leaves it; the next label sets it aside")
    try:
        entries = answers.find(list(dict.fromkeys(line.key for line in found.values())))
    except (DamagedJournal, RecordError) as error:
        proof.unproven.append(f"{LABELS}: not compared with the records: {error}")
        return
    for here, line in found.items():
        entry = entries.get(line.key)
        if entry is None:
            proof.add(f"{here}: the records hold no answer {line.key}")
        elif line.label is not None and line.label not in {choice.name for choice in entry.label.choices}:
            proof.add(f"{here}: {line.label!r} is none of the labels of its answer")
