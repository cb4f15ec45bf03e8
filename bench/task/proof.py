"""How a task's run is proven from manifest and journals alone: the task's own program is not run.

Owns the rules for a task's record: it has the question that the manifest lists, and the score that its answer gets from
the task's scorers, unless one of these is a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation.door.item import Item
from ..evaluation.door.listed_run import ListedRun
from .declared import scorers_from
from .figures import functions_in
from .questions import item_digest, items_digest, line_id
from .records import Record
from .rows import TaskError
from .score_table import rescored
from .task import AnyScorer

_KEPT = "figures: one is a function, which is not run here: it is taken as scores.json has it"
_TRUSTED = "scores: a scorer is a function, which is not run here: its scores are taken as recorded"


def listed_run(manifest: Mapping[str, Any]) -> ListedRun:
    """Returns the items that a run's manifest lists, and how its records are checked."""
    specified, listed = manifest["specification"], manifest["dataset"]["items"]
    scorers = _rules(specified["score"])
    is_whole = items_digest(listed) == specified["questions"]
    return ListedRun(
        items=[
            Item(line_id(item, variant or "", trial), digest, group=group or "", of=item)
            for item, group, digest, variant, only in (_with_version(entry) for entry in listed)
            for trial in (range(specified["trials"]) if only is None else (only,))
        ],
        # The data themselves are not needed: every record is compared with the questions that the manifest lists.
        data=specified["data"] if is_whole else "",
        check=lambda record, item: _wrong_in(record, item, scorers, specified["score"]),
        title=specified["task"],
        unproven=(*(() if scorers is not None else (_TRUSTED,)), *((_KEPT,) if functions_in(specified) else ())),
    )


def _wrong_in(
    record: Record, item: Item | None, scorers: Mapping[str, AnyScorer] | None, described: Mapping[str, Any]
) -> str | None:
    row = (record.item, record.group or None, record.row)
    if item is not None and item_digest(*row, record.prompt, record.order or "") != item.data:
        return f"{record.id}: row, prompt or order of options is not the one that the manifest lists"
    if (line_id(record.item, record.variant or "", record.trial), 1) != (record.id, record.step):
        return f"{record.id}: its fields are of trial {record.trial}, step {record.step}"
    if record.transcript and (wrong := record.transcript.wrong_in(record.keys)) is not None:
        return f"{record.id}: {wrong}"
    if isinstance(record.result, str) and record.result != record.text:
        return f"{record.id}: its result is another text than its answer"
    if scorers is not None:
        try:
            (again,) = rescored(iter([record]), scorers, described)
        except TaskError as error:
            return f"{record.id}: can't be scored again: {error}"
        if (again.score, again.scores) != (record.score, record.scores):
            return f"{record.id}: score {record.score}; its answer has {again.score}"
    return None


def _with_version(entry: list[Any]) -> list[Any]:
    """Returns a listed question with its variant and trial; None where it has none."""
    return [*entry, None, None][:5]


def _rules(described: Mapping[str, Mapping[str, Any]]) -> dict[str, AnyScorer] | None:
    """Returns the scorers of a manifest; None if one is a function, whose recorded scores are then trusted."""
    try:
        return scorers_from(described)
    except TaskError:
        return None
