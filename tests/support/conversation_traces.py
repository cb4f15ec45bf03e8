"""Traces of conversations, from the lines of records."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from millstream.metrics.chameleon.traces import ConversationTrace, Plan, Traces


def traces_of(lines: Iterable[bytes], asked: Plan = MappingProxyType({})) -> tuple[ConversationTrace, ...]:
    """Returns the traces of some lines; blank ones are skipped."""
    traces = Traces()
    for line in lines:
        if line.strip():
            traces.add(line)
    return traces.traces(asked)
