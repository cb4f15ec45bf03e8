"""Opens the kept answers of a run for whoever compares readings of them: people's labels, their proof, two runs.

The answers have the readings of their benchmark and, where it is asked for, those of every judge in
`judgements.jsonl`, after the run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ....engine.runs.run_folder import RECORDS
from ..door.judgement import JUDGEMENTS
from ..door.kept_answer import key_of
from .labelling.sample import AnswerFile

if TYPE_CHECKING:
    from ..door.benchmark import ItemBenchmark
    from ..door.judging import Judging
    from ..door.label import Label, Labeller


def answers_in(
    folder: Path,
    benchmark: ItemBenchmark[Any],
    manifest: Mapping[str, Any] | None,
    *,
    is_shown: bool = False,
    has_judges: bool = False,
) -> AnswerFile:
    """Returns the answers in a folder's records. `is_shown`: whether a person will see their questions; `has_judges`:
    whether the judges' readings are wanted, which need a manifest, since without one nobody knows the run's own."""
    labeller = benchmark.labeller(manifest, is_shown=is_shown)
    if has_judges and manifest is not None and (folder / JUDGEMENTS).exists():
        labeller = _with_judges(labeller, folder, benchmark.judging(manifest))
    return AnswerFile(folder / RECORDS, labeller, benchmark.title)


def _with_judges(labeller: Labeller, folder: Path, judging: Judging) -> Labeller:
    from .judging.folder_panel import lines_of

    lines = {judge: by_key for judge, by_key in lines_of(folder, judging).items() if judge != judging.own}

    def label(record: Any) -> Label | None:
        made = labeller.label(record)
        if made is None or not judging.is_judged(record):
            return made
        readings = dict(made.readings)
        for judge, by_key in lines.items():
            line = by_key.get(key_of(record))
            if line is None or not line.holds_for(record.text):
                continue
            again = labeller.label(judging.applied(record, line))
            if again is not None and again.readings:
                readings[judge] = next(iter(again.readings.values()))
        return structs.replace(made, readings=readings)

    return structs.replace(labeller, label=label)
