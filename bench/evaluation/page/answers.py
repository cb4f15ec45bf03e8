"""Prompts and answers to read on a page: first the items where models differ most, then others while there is room.

All texts of models and data sets are escaped. No script is needed: each item is an HTML `details` element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ....report.escaping import in_html
from ..door.record import Record
from .runs import ReadRun, records_of

# The most characters of all texts together and of one text, and the most items.
_CHARS, _LONGEST, _ITEMS = 1_500_000, 6_000, 300
# The most characters of a prompt in the title of its item, and of a field that shares a line with others.
_TITLE, _BRIEF = 80, 80
# The framework's own fields stand in tables; here an item's other fields are shown.
_COMMON = frozenset(Record.__struct_fields__)


def answers_html(runs: Sequence[ReadRun], names: Mapping[Path, str], kind: type[Record]) -> str:
    """Returns the HTML of a folded box for each item, with the prompt and every model's answers."""
    items = _in_order(runs)
    if not items:
        return '<p class="empty">There is no answer to look into.</p>'
    boxes: list[str] = []
    left = _CHARS
    for item in items[:_ITEMS]:
        box = _item(item, runs, names, kind)
        left -= len(box)
        if boxes and left < 0:
            break
        boxes.append(box)
    more = len(items) - len(boxes)
    rest = f" {more:,} more are in records.jsonl." if more else ""
    order = "those where models differ most first" if any(run.figures for run in runs) else "in the order of the run"
    return f'<p class="note">{len(boxes):,} of {len(items):,} items, {order}.{rest}</p>{"".join(boxes)}'


def prompt_of(runs: Sequence[ReadRun], item: str, kind: type[Record]) -> str | None:
    """Returns the first 80 characters of an item's prompt; None if no record has one."""
    for run in runs:
        for record in records_of(run, item, kind):
            if prompt := " ".join(_prompt(record).split()):
                return prompt[:_TITLE]
    return None


def _in_order(runs: Sequence[ReadRun]) -> list[str]:
    items = dict.fromkeys(item for run in runs for item in run.places)

    def spread(item: str) -> float:
        means = [sum(scores) / len(scores) for run in runs for scores in run.figures.get(item, {}).values()]
        return max(means) - min(means) if means else 0.0

    return sorted(items, key=spread, reverse=True)


def _item(item: str, runs: Sequence[ReadRun], names: Mapping[Path, str], kind: type[Record]) -> str:
    """Returns the HTML of one item: its prompt, then each different answer once, with the trials that gave it."""
    replies: dict[_ShownReply, list[int]] = {}
    for run in runs:
        # Turn by turn, the models beside each other.
        for record in sorted(records_of(run, item, kind), key=lambda record: record.step):
            trial = getattr(record, "trial", None)
            replies.setdefault(_reply_of(record, names[run.path]), []).extend([] if trial is None else [trial])
    parts: list[str] = []
    prompt = ""
    for each, trials in replies.items():
        if each.prompt and each.prompt != prompt:
            prompt = each.prompt
            parts.append(f"<h4>Prompt</h4><pre>{in_html(prompt)}</pre>")
        parts.append(_answer_html(each, sorted(trials)))
    first = " ".join(next((each.prompt for each in replies if each.prompt), "").split())
    title = f"{item}: {first[:_TITLE]}{'…' if len(first) > _TITLE else ''}" if first else item
    return f'<details class="data"><summary>{in_html(title)}</summary>{"".join(parts)}</details>'


class _ShownReply(NamedTuple):
    who: str
    prompt: str
    text: str
    facts: tuple[tuple[str, str], ...]


def _reply_of(record: Any, where: str) -> _ShownReply:
    who = f"{where}: {record.pair}" if where else str(record.pair)
    step = f", step {record.step}" if record.step > 1 else ""
    return _ShownReply(who + step, _prompt(record), _text(record.text or ""), tuple(_own(record)))


def _answer_html(reply: _ShownReply, trials: Sequence[int]) -> str:
    facts = [
        *reply.facts,
        *([("trial" if len(trials) == 1 else "trials", ", ".join(map(str, trials)))] if trials else []),
    ]
    brief = "; ".join(f"{name} {value}" for name, value in facts if len(value) <= _BRIEF and "\n" not in value)
    long = "".join(
        f'<p class="note">{in_html(name)}</p><pre>{in_html(value)}</pre>'
        for name, value in facts
        if len(value) > _BRIEF or "\n" in value
    )
    text = f"<pre>{in_html(reply.text)}</pre>" if reply.text else '<p class="empty">No text.</p>'
    return f'<h4>{in_html(reply.who)}</h4>{text}<p class="note">{in_html(brief)}</p>{long}'


def _own(record: Any) -> Iterator[tuple[str, str]]:
    """Yields name and text of each non-empty field that only this benchmark's records have, then status and cut-off."""
    for name in record.__struct_fields__:
        if name in _COMMON or name in ("prompt", "question", "row", "trial"):
            continue
        value = getattr(record, name)
        if value is None or value is msgspec.UNSET or value == "":
            continue
        yield name.replace("_", " "), _text(value)
    if record.status != "ok":
        yield "status", record.status
    if record.truncated:
        yield "cut off", "at max_tokens"


def _text(value: Any) -> str:
    """Returns a field's value for readers: a table as its names with their values, a value that has a text of its own
    (`str`) as that, anything else that is no text as JSON."""
    if isinstance(value, msgspec.Struct) and "__str__" in vars(type(value)):
        text = str(value)
    elif isinstance(value, dict) and all(isinstance(each, str | int | float | None) for each in value.values()):
        text = ", ".join(f"{name} {'none' if each is None else each}" for name, each in value.items())
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _prompt(record: Any) -> str:
    return _text(getattr(record, "prompt", None) or getattr(record, "question", None) or "")
