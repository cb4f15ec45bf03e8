"""Adds the judges of `judgements.jsonl` to what people's labels are compared with, after the run's own judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from ..kept_answer import key_of, text_hash
from ..labelling.label import Label, Labeller
from .folder_panel import lines_of
from .judging import Judging


def with_judges(labeller: Labeller, folder: Path, judging: Judging) -> Labeller:
    """Returns the maker of a run's labels with a reading of each judge, by its name, behind the run's own."""
    lines = {judge: own for judge, own in lines_of(folder, judging).items() if judge != judging.own}

    def label(record: Any) -> Label | None:
        made = labeller.label(record)
        if made is None or not judging.is_judged(record):
            return made
        readings = dict(made.readings)
        for judge, own in lines.items():
            line = own.get(key_of(record))
            if line is None or line.text_sha256 != text_hash(record.text):
                continue
            again = labeller.label(judging.applied(record, line))
            if again is not None and again.readings:
                readings[judge] = next(iter(again.readings.values()))
        return structs.replace(made, readings=readings)

    return structs.replace(labeller, label=label)
