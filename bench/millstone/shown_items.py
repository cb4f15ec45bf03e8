"""What the table of items by models shows of MillStone: cells of the grid, an issue with one wording in one case, whose
trials differ in the arguments that they show."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..evaluation.door.item_reader import TITLE, CellLine, ItemReader, brief, messages_of
from .dataset import DatasetError
from .grid import Grid, grid_of
from .records import Record
from .work import dataset_of


class GridCell(CellLine, frozen=True, kw_only=True):
    """The fields of an answer that a cell shows."""

    issue: str
    template: int
    config: str
    stance: str | None = None


class GridReader(ItemReader):
    """Reads the answers of one run. The prompts are made again of its data set; without it, none is shown."""

    Line = GridCell

    def __init__(self, manifest: Mapping[str, Any] | None) -> None:
        super().__init__(Record)
        grid = _grid(manifest)
        self.source = "" if grid is None else grid.dataset.digest
        self._issues = {} if grid is None else {issue.id: issue for issue in grid.dataset.issues}
        # The trials of a cell are asked for one after the other.
        self._prompts = None if grid is None else lru_cache(4)(grid.prompts)

    def item(self, line: Any) -> str:
        return f"{line.issue}/{line.template}/{line.config}"

    def group(self, line: Any) -> str:
        return str(line.config)

    def label(self, line: Any) -> str:
        return line.stance or ""

    def title(self, line: Any) -> str:
        issue = self._issues.get(line.issue)
        return "" if issue is None else brief(issue.paraphrases[line.template - 1].question, TITLE)

    def prompt(self, record: Any) -> list[dict[str, Any]]:
        prompts = self._prompts(record.issue, record.template, record.config) if self._prompts else []
        return messages_of(prompts[record.trial]) if record.trial < len(prompts) else []

    def answer(self, record: Any) -> dict[str, Any]:
        arguments = ", ".join(record.arguments)
        read = [
            ("stance", record.stance or "none"),
            ("letter", record.letter or "none"),
            ("A means", record.orientation or "?"),
        ]
        facts = [*read, *([("arguments", arguments)] if arguments else [])]
        return {**super().answer(record), "facts": facts}


def _grid(manifest: Mapping[str, Any] | None) -> Grid | None:
    if manifest is None:
        return None
    try:
        return grid_of(manifest["specification"], dataset_of(manifest))
    except (DatasetError, OSError, KeyError):
        return None
