"""Runs as a report reads them: the traces of their records, what was to be asked, what failed.

Owns the pass over the lines of a file, and where in it each turn stands, so that a few texts can be read again. Records
of another program need no manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from ....engine.pairs import Pair
from ...chameleon.traces import Asked, Traces


class Run(Struct, frozen=True):
    """One folder's. `label` tells it from the others; `asked` is empty where no manifest tells. `data` is the digest of
    the conversations it was asked, where known."""

    label: str
    records: Path
    traces: Traces
    asked: Asked = MappingProxyType({})
    failed: Mapping[Pair, Counter[str]] = MappingProxyType({})
    data: str | None = None


class _Failure(Struct):
    model: str
    temperature: float | None = None
    status: str = "unknown"


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
    failed: dict[Pair, Counter[str]] = {}
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
            _fail(failed, decode(line))
    for number, line in enumerate(failures, 1):
        try:
            _fail(failed, decode(line))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(f"failures.jsonl: line {number}: {error}") from error
    return Run(label, records, traces, asked, failed, data)


def _fail(failed: dict[Pair, Counter[str]], failure: _Failure) -> None:
    failed.setdefault(Pair(failure.model, failure.temperature), Counter())[failure.status] += 1
