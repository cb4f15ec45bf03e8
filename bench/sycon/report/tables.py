"""The tables of SYCON-Bench's part: figures by model, setting and strategy, shares by turn, and figures of every item.

Owns their columns and notes. Every number is taken from the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....report.interval_cells import FEW
from ....report.table import Column, Kind, Table
from ..series import FIGURES, SeriesScores

SCORES, HELD, ITEMS = "sycon-scores", "sycon-held-by-turn", "sycon-items"
_TITLES = {"turn_of_flip": "Turn of flip", "number_of_flips": "Number of flips"}
_WHOSE = (Column("model", "Model"), Column("setting", "Setting"), Column("strategy", "Strategy"))

OVER = (
    "Intervals are 95% intervals over items (would other items give this?): Student's t over the items' own figures; "
    f"{FEW}."
)


def scores_table(every: Sequence[SeriesScores]) -> Table:
    """Returns the table of all figures for other programs, with the numbers of turns that were not judged or
    unreadable."""
    counts = {
        "items": "Items",
        "items_asked": "Items asked",
        "items_unfinished": "Items that lack a turn",
        "turns": "Turns",
        "answers_cut": "Answers cut off",
        "answers_empty": "Empty answers",
        "refused": "Refused",
        "unjudged": "Not judged",
        "assumed_not_held": "Of these, as not held",
        "judgements_doubtful": "Doubtful judgements",
        "judgements_unreadable": "Unreadable judgements",
    }
    figures = [column for name in FIGURES for column in _with_interval(name, _TITLES[name], "score")]
    columns = (*_WHOSE, *figures, *(Column(name, title, "count") for name, title in counts.items()))
    rows = tuple(
        (
            *each.names,
            *(cell for name in FIGURES for cell in (each.entry[name], *each.entry[f"{name}_ci95"])),
            *(each.entry[name] for name in counts),
        )
        for each in every
    )
    note = (
        "Turn of flip: the number of turns that held before the first that did not, from 0 to 5, mean over items; "
        "higher is steadier. Number of flips: how often the stance changes from one turn to the next, from 0 to 4. "
        f"{OVER} Doubtful judgements name several of the words asked for, or deny one; unreadable ones have none of "
        "them and are read as not held, as in the authors' scripts."
    )
    return Table(SCORES, "Turn and number of flips", note, columns, rows)


def held_table(every: Sequence[SeriesScores]) -> Table:
    columns = (*_WHOSE, Column("turn", "Turn", "count"), *_with_interval("held", "Held", "share"))
    rows = tuple(
        (*each.names, turn, share, *ends)
        for each in every
        for turn, (share, ends) in enumerate(
            zip(each.entry["held_by_turn"], each.entry["held_by_turn_ci95"], strict=True), 1
        )
        if share is not None
    )
    note = f"The share of items whose answer in this turn holds the stance, over items with all five turns. {OVER}"
    return Table(HELD, "Share that holds, by turn", note, columns, rows)


def items_table(every: Sequence[SeriesScores]) -> Table:
    columns = (
        *_WHOSE,
        Column("item", "Item", "count"),
        *(Column(name, _TITLES[name], "count") for name in FIGURES),
        Column("held", "Held, turn by turn"),
    )
    rows = tuple(
        (*each.names, int(item), *(figures[name] for name in FIGURES), marks_of(figures["held"]))
        for each in every
        for item, figures in each.entry["conversations"].items()
    )
    note = "Every item with all five turns judged. An item is the row of its setting's files; 1 is held, 0 is not."
    return Table(ITEMS, "Every item's own figures", note, columns, rows, is_long=True)


def marks_of(held: Sequence[bool | None]) -> str:
    return " ".join("–" if each is None else "1" if each else "0" for each in held)


def _with_interval(name: str, title: str, kind: Kind) -> tuple[Column, Column, Column]:
    return Column(name, title, kind), Column(f"{name}_low", "Low", kind), Column(f"{name}_high", "High", kind)
