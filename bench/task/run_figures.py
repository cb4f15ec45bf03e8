"""The figures of a task's run for a comparison with another run on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ...metrics.statistics.intervals import are_binary
from ...metrics.task.summary import seen_bounds
from ..evaluation.door.item_reader import brief, text_of
from ..evaluation.door.run_figures import RowFigures, RunFigures
from ..evaluation.door.treatments import pairs_in
from .described import options_of
from .options import Readings
from .records import Record
from .recount import model_answers
from .rows import canonical
from .score_document import NO_MANIFEST, rules_of

# As many prompts are kept as text, to show how they differ.
_EXAMPLES = 20
_NAME_CHARS = 60


def run_figures(records: Iterable[Record], specification: Mapping[str, Any], readings: Readings) -> RunFigures:
    """Returns the figures of each model's items. `readings`: how the records are read."""
    items, rules = _Items(), rules_of(specification, readings)
    models = model_answers(items.noted(records), pairs_in(specification), specification["trials"])
    rows = {}
    for pair, model in models.items():
        values = dict(zip(model.items, model.values(rules).tolist(), strict=True))
        figures = {items.keys[item]: value for item, value in values.items() if not np.isnan(value)}
        rows[model.name] = RowFigures(pair, figures, are_binary(model.column()))
    within = rules.within or seen_bounds([*models.values()])
    return RunFigures(
        rows=rows,
        options={
            **options_of(specification, has_all_scorers=False),
            **({"shots": items.shots} if items.shots and _is_template(specification) else {}),
            "combine": rules.combine,
            "unreadable": rules.unreadable,
        },
        names=items.names,
        addresses=specification.get("endpoints") or {},
        within=within,
        has_right=within == (0.0, 1.0),
        is_told=specification is not NO_MANIFEST,
        prompts=items.prompts,
        examples=items.examples,
    )


class _Items:
    """The items of records: their keys, names and prompts, noted while the records are read."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.prompts: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.shots = ""

    def noted(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            if not self.keys and not isinstance(record.prompt, str):
                # The questions of shots may follow from the prompt's text; their answers do not.
                self.shots = "\n".join(str(each["content"]) for each in record.prompt if each["role"] == "assistant")
            if (key := self.keys.get(record.item)) is None:
                # Two files may give different rows one id.
                digest = hashlib.sha256(canonical(record.row)).hexdigest()
                key = self.keys[record.item] = f"{record.item} {digest[:16]}"
                row = brief(", ".join(map(str, record.row.values())), _NAME_CHARS)
                self.names[key] = record.item if "id" in record.row else row or record.item
            if not record.trial:
                text, of_variant = _prompt_text(record), f"{key} {record.variant or ''}"
                self.prompts.setdefault(of_variant, hash(text))
                if len(self.examples) < _EXAMPLES:
                    self.examples.setdefault(of_variant, text)
            yield record


def _is_template(specification: Mapping[str, Any]) -> bool:
    prompt = specification.get("prompt") or {}
    return all("text" in each for each in (prompt.get("variants") or {"": prompt}).values())


def _prompt_text(record: Record) -> str:
    if isinstance(record.prompt, str):
        return record.prompt
    return "\n".join(f"{message.get('role')}: {text_of(message.get('content'))}" for message in record.prompt)
