"""How a benchmark's records are read for the table of items by models: what a cell shows of a line, and what an opened
item shows of a record.

A benchmark extends `CellLine` and `ItemReader` where its records have other fields. Knows no file and no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct, UnsetType

from ....engine.pairs import Pair, pair_of
from .record import Record

Part: TypeAlias = dict[str, Any]
"""A part of a message: {"text": …}, {"image": …}, {"call": name, "arguments": …} or {"result": …}."""
# The most characters of a title, and of the beginning of an answer that stands for a label.
TITLE, BEGINNING = 80, 40
# The framework's own fields stand in tables; of an opened item its other fields are shown.
_COMMON = frozenset(Record.__struct_fields__)
_APART = frozenset(
    {"prompt", "question", "row", "trial", "variant", "score", "scores", "judge"}
    | {"transcript", "tool_calls", "problem"}
)


class TokenCounts(Struct, frozen=True, gc=False):
    """The counts of tokens that a cell adds up."""

    input: int | None = None
    output: int | None = None
    total: int | None = None

    @property
    def both(self) -> int | None:
        """Tokens of prompt and answer together; None: not reported."""
        return self.total if self.input is None or self.output is None else self.input + self.output


class CellLine(Struct, frozen=True, kw_only=True):
    """The fields of a line that a cell of the table shows. All other fields are passed over, which is quick."""

    model: str
    id: str = ""
    temperature: float | None = None
    effort: str | None = None
    status: str = "ok"
    truncated: bool = False
    item: str = ""
    group: str = ""
    text: str | None = None
    cost: float | None = None
    usage: TokenCounts | None = None
    score: Any = None
    read: Any = None
    prompt: Raw | UnsetType = msgspec.UNSET
    question: Raw | UnsetType = msgspec.UNSET
    row: Raw | UnsetType = msgspec.UNSET

    @property
    def pair(self) -> Pair:
        """The model under test and its treatment."""
        return pair_of(self)


class ItemReader:
    """What the table shows of one run. The answers of a model to an item are its trials, or its turns."""

    Line: type[Any] = CellLine
    """The type of a line as a cell needs it."""
    answers_are = "trial"
    """What a model's several answers to one item are: `trial` or `turn`."""
    within: tuple[float, float] | None = None
    """The least and the largest possible score; None: not known. Below their middle an answer counts as wrong."""

    source = ""
    """The digest of the data that titles are read from, if they are not in the records; empty: they are."""

    def __init__(self, record: type[Any]) -> None:
        self.Record = record

    def order(self) -> Iterable[str]:
        """Returns the ids of the items in the order of the data; empty: it is not known."""
        return ()

    def item(self, line: Any) -> str:
        """Returns the id of the item that a line belongs to."""
        return str(line.item or line.id)

    def group(self, line: Any) -> str:
        return str(line.group)

    def score(self, line: Any) -> float | None:
        return float(line.score) if isinstance(line.score, (int, float)) else None

    def label(self, line: Any) -> str:
        """Returns what was read in the answer, in a word: a stance, or the letter of a choice; empty: nothing was."""
        return line.read if isinstance(line.read, str) else ""

    def title(self, line: Any) -> str:
        """Returns the beginning of what was asked."""
        for raw in (line.prompt, line.question):
            messages = [] if raw is msgspec.UNSET else messages_of(msgspec.json.decode(raw))
            users = [each for each in messages if each["role"] == "user"] or messages
            texts = [part.get("text", "") for part in users[-1]["content"]] if users else []
            if title := brief(" ".join(texts), TITLE):
                return title
        return brief(text_of(self.row(line)), TITLE)

    def expected(self, row: Mapping[str, Any]) -> str:
        """Returns the right answer of an item by its row; empty if it has none, or it is not known."""
        return ""

    def row(self, line: Any) -> Mapping[str, Any]:
        """Returns the columns of the data that the item of a line or record was made of, by name; empty without any."""
        row = getattr(line, "row", None)
        row = msgspec.json.decode(row) if isinstance(row, Raw) else row
        return row if isinstance(row, dict) else {}

    def answer(self, record: Any) -> dict[str, Any]:
        """Returns what an opened item shows of one record."""
        problem = None if record.error is msgspec.UNSET else record.error
        return {
            "number": self.number(record),
            "variant": getattr(record, "variant", None) or "",
            "prompt": self.prompt(record),
            "text": record.text or "",
            "status": record.status,
            "isCut": record.truncated,
            "score": _number(getattr(record, "score", None)),
            "scores": getattr(record, "scores", None) or {},
            "problem": getattr(record, "problem", None) or problem,
            "cost": record.cost,
            "seconds": None if record.latency_ms is None else record.latency_ms / 1000,
            "judge": self.judge(record),
            "steps": self.steps(record),
            "facts": list(own_facts(record)),
        }

    def answers(self, records: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns what an opened item shows of all records of one model."""
        return list(map(self.answer, records))

    def number(self, record: Any) -> int | None:
        """Returns the number of a trial or turn; None: it has none. Of turns, a line is enough."""
        number = getattr(record, "trial", None)
        return record.step or None if number is None else number

    def prompt(self, record: Any) -> list[dict[str, Any]]:
        """Returns the messages that were sent, each with its role and the parts of its content."""
        return messages_of(getattr(record, "prompt", None) or getattr(record, "question", None) or "")

    def judge(self, record: Any) -> list[dict[str, Any]]:
        """Returns what judges said of the answer: who, the grade, the score and the reason."""
        return []

    def steps(self, record: Any) -> list[dict[str, Any]]:
        """Returns what was said and done in an item of several steps, in order; empty: it is one call."""
        return []


def own_facts(record: Any, without: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields name and text of each field that only this benchmark's records have and that has a value."""
    for name in record.__struct_fields__:
        if name in _COMMON or name in _APART or name in without:
            continue
        value = getattr(record, name)
        if value is None or value is msgspec.UNSET or value in ("", ()):
            continue
        yield name.replace("_", " "), text_of(value)


def messages_of(prompt: Any) -> list[dict[str, Any]]:
    """Returns a prompt of a record, a text or a list of messages, as messages."""
    if not isinstance(prompt, list):
        return [{"role": "user", "content": parts_of(prompt)}] if prompt else []
    return [
        {"role": str(each.get("role", "")), "content": parts_of(each.get("content"))}
        if isinstance(each, dict)
        else {"role": "user", "content": parts_of(each)}
        for each in prompt
    ]


def parts_of(content: Any) -> list[Part]:
    """Returns the content of a message as parts."""
    return list(map(_part, content)) if isinstance(content, list) else [{"text": text_of(content)}]


def _part(part: Any) -> Part:
    match part:
        case str():
            return {"text": part}
        case {"image": {"url": str(url)}} | {"image": str(url)}:
            return {"image": url}
        case {"toolcall": {"name": name, "arguments": arguments}}:
            return {"call": text_of(name), "arguments": text_of(arguments)}
        case {"toolresult": {"content": content}}:
            return {"result": "\n".join(str(each.get("text", each.get("image", ""))) for each in parts_of(content))}
    return {"text": text_of(part)}


def text_of(value: Any) -> str:
    """Returns a value for readers: a text as it is, a flat table as its names with their values, else JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and all(isinstance(each, str | int | float | None) for each in value.values()):
        return ", ".join(f"{name} {'none' if each is None else each}" for name, each in value.items())
    return msgspec.json.encode(value, enc_hook=repr).decode()


def brief(text: str, longest: int) -> str:
    """Returns the beginning of a text on one line, with `…` in the place of the rest."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest and len(text) <= 4 * longest else f"{line[: longest - 1]}…"


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None
