"""The benchmarks by name: how each is prepared from its options, and found again from a manifest.

Owns this one table; what a benchmark is, its own work knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import chameleon_work, millstone_work
from .benchmark_options import BenchmarkOptions, MillstoneOptions
from .chameleon_work import ChameleonWork
from .configuration import Configuration
from .millstone_work import MillstoneWork
from .options import Sending
from .preparation import Prepared, refuse_what_is_no_host, refuse_what_is_no_sink, refuse_what_is_no_snapshot
from .refusal import UsageError


def prepare(
    out: Path, run: BenchmarkOptions, sending: Sending, configuration: Configuration, *, needs_keys: bool = True
) -> Prepared:
    """Check one run to the end. Nothing is written. Without `needs_keys` it can be planned, not sent."""
    if isinstance(run, MillstoneOptions):
        prepared = millstone_work.prepare(out, run, sending, configuration, needs_keys=needs_keys)
    else:
        prepared = chameleon_work.prepare(out, run, sending, configuration, needs_keys=needs_keys)
    refuse_what_is_no_host(prepared.settings)
    refuse_what_is_no_snapshot(prepared.settings)
    refuse_what_is_no_sink(prepared.settings)
    return prepared


def options_of(manifest: Mapping[str, Any]) -> tuple[BenchmarkOptions, Sending]:
    """What a manifest keeps of both. Raises KeyError or TypeError where it was not ours."""
    kept = dict(manifest["options"]["sending"])
    if kept.get("allow_host") is not None:
        kept["allow_host"] = tuple(kept["allow_host"])
    work = chameleon_work if manifest["specification"].get("benchmark") == "chameleon" else millstone_work
    return work.options_of(manifest), Sending(**kept)


def millstone_of(prepared: Prepared, what: str) -> MillstoneWork:
    """A MillStone run's own work; `what` is offered for this benchmark alone."""
    if not isinstance(prepared.work, MillstoneWork):
        raise UsageError(f"{what}: expected a MillStone run, got one of {prepared.work.benchmark}")
    return prepared.work


def chameleon_of(prepared: Prepared) -> ChameleonWork | None:
    return prepared.work if isinstance(prepared.work, ChameleonWork) else None
