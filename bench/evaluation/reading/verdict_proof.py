"""Proves the verdicts on a run's answers. Of labels and judgements: each line's checksum, and that its answer is one of
the run's; of labels: that they can be given; of judgements: that no judge judged twice, and that no line which the
manifest counts is missing.

Reads the files of the run's folder and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....engine.fault import DamagedJournal, LocalFault
from ....engine.runs.proof import Proof, check_hashes, whole_lines
from ....engine.runs.run_folder import RECORDS, read_manifest
from ..door.benchmark import ItemBenchmark
from ..door.judgement import FILES, JUDGEMENTS, Judgement
from ..door.judging import Judging
from ..door.kept_answer import Key
from ..running.journals import RecordError
from .answers import answers_in
from .judging.kept_answers import KeptAnswers
from .labelling.label_lines import LABELS, LabelLine
from .labelling.sample import AnswerFile


def prove_verdicts(folder: Path, manifest: dict[str, Any], benchmark: ItemBenchmark[Any], proof: Proof) -> None:
    """Adds to the proof what is wrong with the labels and the judgements of a run, where there are any."""
    if (folder / LABELS).exists():
        _prove_labels(folder, answers_in(folder, benchmark, manifest), proof)
    if any((folder / name).exists() for name in (JUDGEMENTS, FILES.manifest)):
        _prove_judgements(folder, manifest, benchmark.judging(manifest), proof)


def _prove_labels(folder: Path, answers: AnswerFile, proof: Proof) -> None:
    lines = [
        (here, line)
        for here, line in whole_lines(folder / LABELS, LabelLine, "label", proof, "label")
        if line is not None
    ]
    try:
        entries = answers.find(list(dict.fromkeys(line.answer for _, line in lines)))
    except (DamagedJournal, RecordError) as error:
        proof.unproven.append(f"{LABELS}: not compared with the records: {error}")
        return
    for here, line in lines:
        entry = entries.get(line.answer)
        if entry is None:
            proof.add(f"{here}: the records hold no answer {line.answer}")
        elif line.label is not None and not entry.label.offers(line.label):
            proof.add(f"{here}: {line.label!r} is none of the labels of its answer")


def _prove_judgements(folder: Path, manifest: dict[str, Any], judging: Judging, proof: Proof) -> None:
    noted = _prove_manifest(folder, manifest, proof)
    try:
        answers = KeptAnswers(folder / RECORDS, judging)
    except (DamagedJournal, RecordError) as error:
        proof.unproven.append(f"{JUDGEMENTS}: not compared with the records: {error}")
        return
    seen: set[tuple[str, Key, str]] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for name in (FILES.records, FILES.failures):
        for here, line in whole_lines(folder / name, judging.Line, "judgement", proof):
            if line is None:
                continue
            place = (line.judge, line.answer, line.text_sha256)
            if place in seen:
                proof.add(f"{here}: {line.judge} judged {line.answer} twice")
            seen.add(place)
            counts[name, line.judge] += 1
            if wrong := _wrong_in(line, name, answers, judging):
                proof.add(f"{here}: {wrong}")
    _compare_counts(noted, counts, proof)


def _compare_counts(noted: Mapping[str, Any], counts: Mapping[tuple[str, str], int], proof: Proof) -> None:
    """Adds a finding for each judge with fewer lines than the manifest counts. More are not wrong: judgements of an
    earlier text stay, and are not counted."""
    if noted.get("ended") is None:
        return
    for row in noted.get("counts") or ():
        for name, count in (
            (FILES.records, row["ok"] + row["refused"]),
            (FILES.failures, sum(row["failed"].values())),
        ):
            held = counts.get((name, row["model"]), 0)
            if held < count:
                proof.add(f"{name}: {held:,} lines of {row['model']}; {FILES.manifest} counts {count:,}")


def _prove_manifest(folder: Path, manifest: dict[str, Any], proof: Proof) -> Mapping[str, Any]:
    """Returns the judgements' own manifest; an empty one if it can't be read or was changed."""
    try:
        noted = read_manifest(folder, FILES.manifest)
    except LocalFault as fault:
        proof.add(str(fault))
        return {}
    is_unchanged = check_hashes(noted, FILES.manifest, proof)
    if noted["specification"].get("run") != manifest.get("specification_hash"):
        proof.add(f"{FILES.manifest}: these are judgements of another run")
    return noted if is_unchanged else {}


def _wrong_in(line: Judgement, name: str, answers: KeptAnswers, judging: Judging) -> str | None:
    """Returns what is wrong with one line; None: nothing. A judgement of an earlier text of its answer is not wrong: it
    does not count."""
    if line.is_failure != (name == FILES.failures):
        return f"status {line.status} does not belong in this file"
    if line.answer not in answers:
        return f"the records hold no answer {line.answer} that a judge reads"
    return None if line.is_failure else judging.wrong_in(line)
