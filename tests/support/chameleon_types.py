"""What tests of Chameleon's conversations share: the types of what they are given, and which turns a run holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from chameleon_sweep import specification

from millstream.bench.chameleon.dataset import ConversationSet
from millstream.bench.chameleon.run_spec import ConversationSpec, planned_turns
from millstream.engine.fault import Stop

Line = dict[str, Any]
Lines = Callable[..., list[Line]]
Making = Callable[..., ConversationSet]
Asking = Callable[..., ConversationSpec]
Running = Callable[..., list[Stop]]


def ids(records: Iterable[Line]) -> list[str]:
    return [record["id"] for record in records]


def whole(asked: ConversationSpec, dataset: ConversationSet) -> set[tuple[str, float | None, str]]:
    return {
        (pair.model, pair.temperature, f"{name}/{turn}")
        for pair, conversations in planned_turns(specification(dataset, asked, {})).items()
        for name, turns in conversations.items()
        for turn in range(1, turns + 1)
    }


def written(lines: Lines) -> list[tuple[str, float | None, str]]:
    return [(line["model"], line["temperature"], line["id"]) for line in lines()]


def in_order(lines: Lines) -> bool:
    """Whether every conversation's turns stand in their order."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for line in lines():
        key = (line["model"], line["temperature"], line["conversation"])
        seen[key] += 1
        if line["turn"] != seen[key]:
            return False
    return True
