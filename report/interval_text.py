"""Intervals of `scores.json` as text for tables on a terminal.

Owns these words alone, for every benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def interval_cell(entry: Mapping[str, Any], places: int) -> str:
    """Returns the ends of an entry's interval with `places` decimals; without an interval the reason from its note, `-`
    if there is no note either. `entry` has `ci95` and `ci95_note`."""
    low, high = entry.get("ci95") or (None, None)
    note = entry.get("ci95_note") or ""
    if low is None or high is None:
        return f"none: {note.removeprefix('no interval: ')}" if note else "-"
    ends = f"{low:.{places}f} to {high:.{places}f}"
    return f"{ends}, approximate" if note.startswith("approximate") else ends


def single_figures(
    name: str, entry: Mapping[str, Any], figures: Mapping[str, float | None], places: int
) -> Iterator[str]:
    """Yields a sentence on why there is no interval, with the single figures if they are fewer than ten; nothing if
    there is an interval, or no figure."""
    texts = [f"{each} {figure:.{places}f}" for each, figure in figures.items() if figure is not None]
    low, _ = entry.get("ci95") or (None, None)
    note = entry.get("ci95_note")
    if not texts or low is not None or not note:
        return
    yield f"{name}: {note}" + (f"; single figures: {', '.join(texts)}" if len(texts) < 10 else "")
