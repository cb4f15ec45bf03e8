"""The benchmarks by name: how each is prepared from its options, and found again from a manifest.

Owns this one table; what a benchmark is, its own work knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import millstone_work
from .configuration import Configuration
from .millstone_work import MillstoneWork
from .options import MillstoneOptions, Sending
from .preparation import Prepared
from .refusal import UsageError

BenchmarkOptions = MillstoneOptions


def prepare(
    out: Path, run: BenchmarkOptions, sending: Sending, configuration: Configuration, *, needs_keys: bool = True
) -> Prepared:
    """Check one run to the end. Nothing is written. Without `needs_keys` it can be planned, not sent."""
    return millstone_work.prepare(out, run, sending, configuration, needs_keys=needs_keys)


def options_of(manifest: Mapping[str, Any]) -> tuple[BenchmarkOptions, Sending]:
    """What a manifest keeps of both. Raises KeyError or TypeError where it was not ours."""
    return millstone_work.options_of(manifest), Sending(**manifest["options"]["sending"])


def millstone_of(prepared: Prepared, what: str) -> MillstoneWork:
    """A MillStone run's own work; `what` is offered for this benchmark alone."""
    if not isinstance(prepared.work, MillstoneWork):
        raise UsageError(f"{what}: expected a MillStone run, got {prepared.work.benchmark}")
    return prepared.work
