"""Conversations to read: the questions, every model's answers and their judgements, folded by item.

Owns which items are shown and their markup; needs no script. All texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from ....report.escaping import in_html
from ....report.labels import one_line
from .tables import SeriesScores, marks_of

# The most characters of texts on a page: two megabytes, as much as its charts take.
BUDGET = 2_000_000
LONGEST = 3_000
_TITLE_LONGEST = 140

Item = tuple[str, str, int]
"""Setting, strategy and number of an item."""


class ReadTurn(Struct, frozen=True):
    """One turn to be read.

    number: from 1 to 5.
    question: the user's text.
    answer: the model's answer.
    judgement: the judge's answer; None where there is none.
    held: whether the stance was held; None where nothing was judged.
    """

    number: int
    question: str
    answer: str
    judgement: str | None
    held: bool | None

    @property
    def length(self) -> int:
        return min(len(self.question), LONGEST) + min(len(self.answer), LONGEST)


Conversations = Mapping[str, Sequence[ReadTurn]]
"""The turns of one item, by model name."""

Read = Callable[[Item], Conversations]
"""Reads the conversations about an item."""


def items_to_read(every: Iterable[SeriesScores]) -> list[Item]:
    """Returns items in the order in which to show them: within each setting and strategy by mean turn of flip, lowest
    first; settings and strategies alternate, so that none uses up the space."""
    groups: dict[tuple[str, str], dict[int, list[int]]] = {}
    for each in every:
        items = groups.setdefault((each.setting, each.strategy), {})
        for item, figures in each.entry["conversations"].items():
            items.setdefault(int(item), []).append(figures["turn_of_flip"])
    queues = [
        [(setting, strategy, item) for item in sorted(items, key=lambda at: (sum(items[at]) / len(items[at]), at))]
        for (setting, strategy), items in groups.items()
    ]
    longest = max(map(len, queues), default=0)
    return [queue[at] for at in range(longest) for queue in queues if at < len(queue)]


def reading_html(order: Sequence[Item], read: Read, budget: int = BUDGET) -> str:
    """Returns the HTML of the first items, in order, whose texts have at most `budget` characters together. At most one
    more item is read than shown."""
    boxes: dict[tuple[str, str], list[str]] = {}
    kept = 0
    for item in order:
        conversations = read(item)
        budget -= sum(turn.length for turns in conversations.values() for turn in turns)
        if budget < 0:
            break
        boxes.setdefault(item[:2], []).append(_item_html(item, conversations))
        kept += 1
    if not kept:
        return '<p class="empty">There is no conversation with all five turns judged.</p>'
    note = "Of each setting and strategy those items stand first whose stance was given up first."
    if kept < len(order):
        note += f" To keep the page small, {kept:,} of {len(order):,} items are here; all are in the records."
    parts = [f'<p class="note">{note} Texts beyond {LONGEST:,} characters are cut.</p>']
    for (setting, strategy), items in boxes.items():
        parts.append(f"<h3>{in_html(setting)}, {in_html(strategy)}</h3>{''.join(items)}")
    return "".join(parts)


def _item_html(item: Item, by_model: Mapping[str, Sequence[ReadTurn]]) -> str:
    first = next((turn.question for turns in by_model.values() for turn in turns if turn.number == 1), "")
    marks = "; ".join(
        f"{one_line(model, 60)}: {marks_of([turn.held for turn in turns])}" for model, turns in by_model.items()
    )
    models = "".join(
        f"<h4>{in_html(one_line(model))}</h4><ol>{''.join(map(_turn_html, turns))}</ol>"
        for model, turns in by_model.items()
    )
    return (
        f'<details class="sycon-item"><summary>{item[2]}. {in_html(one_line(first, _TITLE_LONGEST))} '
        f'<span class="marks">{in_html(marks)}</span></summary>{models}</details>'
    )


def _turn_html(turn: ReadTurn) -> str:
    if turn.held is None:
        verdict = "not judged"
    else:
        word = "" if turn.judgement is None else f": “{in_html(one_line(turn.judgement, 80))}”"
        verdict = f"{'held' if turn.held else 'not held'}{word}"
    state = "unknown" if turn.held is None else "held" if turn.held else "lost"
    return (
        f'<li value="{turn.number}"><p class="asked">{_text(turn.question)}</p><p class="answered">'
        f'{_text(turn.answer)}</p><p class="verdict {state}">{verdict}</p></li>'
    )


def _text(text: str) -> str:
    if not text:
        return "(no text)"
    if len(text) <= LONGEST:
        return in_html(text)
    last = LONGEST // 3
    return f"{in_html(text[: LONGEST - last])} […] {in_html(text[-last:])} (cut: {len(text):,} characters)"


STYLE = """
.sycon-item { border-top: 1px solid var(--line); padding: 0.35rem 0; }
.sycon-item .marks { color: var(--chart-quiet); white-space: nowrap; font-variant-numeric: tabular-nums; }
.sycon-item ol { padding-left: 1.6rem; }
.sycon-item p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.3rem 0; }
.sycon-item .asked { font-weight: 600; }
.sycon-item .verdict { color: var(--chart-quiet); }
.sycon-item .verdict.lost { color: var(--chart-con); }
.sycon-item .verdict.held { color: var(--chart-pro); }
"""
