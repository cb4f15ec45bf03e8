"""Runs as a report reads them: the traces of their records, what was to be asked, what failed.

Owns the pass over the lines of a file, and where in it each turn stands, so that a few texts can be read again. Records
of another program need no manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from ....engine.pairs import Pair
from ...chameleon.traces import Asked, Traces


class Run(Struct, frozen=True):
    """One folder's. `label` tells it from the others; `asked` and `specification` are empty where no manifest tells.
    `data` is the digest of the conversations it was asked, where known; `is_sample`: they are those that come with the
    package. `steps` has where turns failed, `held` how many later turns that kept back."""

    label: str
    records: Path
    traces: Traces
    asked: Asked = MappingProxyType({})
    failed: Mapping[Pair, Counter[str]] = MappingProxyType({})
    data: str | None = None
    steps: Mapping[Pair, Counter[str]] = MappingProxyType({})
    held: Mapping[Pair, int] = MappingProxyType({})
    specification: Mapping[str, Any] = MappingProxyType({})
    is_sample: bool = False


class _Failure(Struct):
    model: str
    temperature: float | None = None
    status: str = "unknown"
    conversation: str = ""
    turn: int = 0
    step: str = ""


class _Failed:
    """Failures as they are gathered: their kinds, their steps, and each conversation's first failed turn."""

    def __init__(self) -> None:
        self.kinds: dict[Pair, Counter[str]] = {}
        self.steps: dict[Pair, Counter[str]] = {}
        self._first: dict[tuple[Pair, str], int] = {}

    def add(self, failure: _Failure) -> None:
        pair = Pair(failure.model, failure.temperature)
        self.kinds.setdefault(pair, Counter())[failure.status] += 1
        if failure.step:
            self.steps.setdefault(pair, Counter())[failure.step] += 1
        place = (pair, failure.conversation)
        self._first[place] = min(failure.turn, self._first.get(place, failure.turn))

    def held(self, asked: Asked) -> Counter[Pair]:
        """Turns behind a failed one, which are not asked before it is answered."""
        held: Counter[Pair] = Counter()
        for (pair, conversation), turn in self._first.items():
            held[pair] += max(0, asked.get(pair, {}).get(conversation, turn) - turn)
        return held


def read_run(
    label: str,
    records: Path,
    lines: Iterable[bytes],
    failures: Iterable[bytes] = (),
    asked: Asked = MappingProxyType({}),
    data: str | None = None,
) -> Run:
    """One pass over the lines of a file of records, all of them from its first and without their newlines. Raises
    ValueError, which names the file and the line."""
    traces = Traces()
    following = 0
    failed = _Failed()
    decode = msgspec.json.Decoder(_Failure).decode
    for number, line in enumerate(lines, 1):
        offset, following = following, following + len(line) + 1
        if not line.strip():
            continue
        try:
            is_turn = traces.add(line, offset)
        except ValueError as error:
            raise ValueError(f"{records}: line {number}: {error}") from error
        if not is_turn:
            failed.add(decode(line))
    for number, line in enumerate(failures, 1):
        try:
            failed.add(decode(line))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(f"failures.jsonl: line {number}: {error}") from error
    return Run(label, records, traces, asked, failed.kinds, data, failed.steps, failed.held(asked))
