"""The section of a report that shows items by models: the table's data, and the texts of as many items as fit.

Owns which items the page holds. The texts of models stand in it as data alone, which its script writes as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from ....report.escaping import packed
from ....report.sections import Section
from .items import Matrix

# Before compression: a million characters of prose take about half a megabyte of a page.
_CHARS, _LONGEST = 8_000_000, 6_000
# A cell takes up to ten bytes of a page; a hundred thousand items' titles of eighty characters two megabytes.
_CELLS, _TITLES = 400_000, 4_000_000


def item_section(matrix: Matrix, name: str, title: str = "Items by models") -> tuple[Section, dict[str, str]]:
    """Returns the section on the items of these runs, and the data for the page's script. `name` is the beginning of
    its elements' ids."""
    order = _order(matrix)
    kept = sorted(order[: max(1, _CELLS // max(1, len(matrix.models)))])
    texts = dict(_texts(matrix, order))
    first = "those whose scores differ most" if len(matrix.models) > 1 else "those of the highest and the lowest scores"
    notes = list(_notes(len(matrix.items), len(kept), len(texts), first))
    columns = matrix.columns(kept, max(20, min(80, _TITLES // max(1, len(kept)))), notes=notes)
    identity = f"{name}-matrix"
    body = (
        f'<div class="items" id="{identity}-table" data-columns="{identity}-data" data-texts="{identity}-texts">'
        '<noscript><p class="note">The table of items needs JavaScript; every answer stands in records.jsonl.</p>'
        "</noscript></div>"
    )
    return Section(identity, title, body), {f"{identity}-data": packed(columns), f"{identity}-texts": packed(texts)}


def _order(matrix: Matrix) -> list[int]:
    """Returns the items in the order in which they are kept: where models differ most; of one model, from both ends of
    its scores, then those without a score."""
    if len(matrix.models) != 1:
        return np.argsort(-matrix.spread(), kind="stable").tolist()  # type: ignore[no-any-return]
    score = matrix.score[0]
    scored = np.argsort(score, kind="stable")[: np.count_nonzero(~np.isnan(score))]
    ends = np.minimum(np.arange(len(scored)), np.arange(len(scored))[::-1])
    return [*scored[np.argsort(ends, kind="stable")].tolist(), *np.flatnonzero(np.isnan(score)).tolist()]


def _texts(matrix: Matrix, order: list[int]) -> Iterator[tuple[str, Any]]:
    """Yields items with all that was said of them, the first ones of this order, as many as fit."""
    names, left = list(matrix.items), _CHARS
    for at in order:
        details = matrix.details(names[at], _LONGEST)
        left -= len(msgspec.json.encode(details))
        if left < 0:
            return
        yield names[at], details


def _notes(every: int, rows: int, whole: int, first: str) -> Iterator[str]:
    """Yields sentences on what is not in the page. `first`: which items are kept."""
    if rows < every:
        yield f"To keep the page small, {rows:,} of {every:,} items are here, {first}; `millstream view` shows all."
    if whole < rows:
        yield f"Prompts and answers are here of {whole:,} items, {first}; `millstream view` shows all."
