"""Checks which options of `millstream load` go together: an error names both options that conflict.

Light and pure: looks at the given options only, and opens and builds nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from ...configuration.errors import UsageError
from .option_kinds import TRACE

ARRIVALS = ("rate", "ramp", "steps", "replay", "in_flight", "goal")
PROMPTS = ("prompt_tokens", "prompts", "dataset")
# Options that go with some of the arrivals only.
_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "arrivals": ("rate", "ramp", "steps", "goal"),
        "burstiness": ("rate", "ramp", "steps", "goal"),
        "step_time": ("steps",),
        "speed": ("replay",),
        "lowest": ("goal",),
        "highest": ("goal",),
        "precision": ("goal",),
        "most_in_flight": ("rate", "ramp", "steps", "replay", "goal"),
        "duration": ("rate", "ramp", "replay", "in_flight"),
        "calls": ("rate", "ramp", "steps", "replay", "in_flight"),
    }
)
_WHY: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("duration", "steps"): "each step's length is --step-time",
        ("duration", "goal"): "a search takes as long as its calls need: narrow it by --from and --to",
        ("calls", "goal"): "a search needs as many calls as decide it: bound it by --max-cost or --to",
        ("most_in_flight", "in_flight"): "a closed loop has as many in flight as it says",
        ("arrivals", "replay"): "the trace says when calls arrive",
        ("arrivals", "in_flight"): "in a closed loop a call arrives as another ends",
        ("burstiness", "replay"): "the trace says when calls arrive",
        ("burstiness", "in_flight"): "in a closed loop a call arrives as another ends",
    }
)
_FLAGS = MappingProxyType({"lowest": "--from", "highest": "--to"})


def check_conflicts(options: argparse.Namespace) -> None:
    """Raises UsageError for options of `millstream load` that exclude each other."""
    arrivals = _one_of(options, ARRIVALS, "what says when calls are due")
    _one_of(options, PROMPTS, "what is asked")
    for name, owners in _OF.items():
        if getattr(options, name) is not None and (arrivals or "rate") not in owners:
            _raise_conflict(name, arrivals, owners)
    _check_processes(options)
    _check_prompts(options)
    mode = options.sending.mode
    if mode not in (None, "live"):
        raise UsageError(
            f"--mode: expected live, or nothing, got {mode}: a load test sends every call and stores no answer"
        )


def _one_of(options: argparse.Namespace, names: tuple[str, ...], what: str) -> str | None:
    said = [name for name in names if getattr(options, name) is not None]
    if len(said) > 1:
        flags = ", ".join(map(_flag, names))
        raise UsageError(f"expected one of {flags} as {what}, got {' and '.join(map(_flag, said))}: leave one out")
    return said[0] if said else None


def _raise_conflict(name: str, arrivals: str | None, owners: tuple[str, ...]) -> None:
    wanted = " or ".join(map(_flag, owners))
    if arrivals is None:
        raise UsageError(f"{_flag(name)}: expected {wanted} beside it, got none")
    why = _WHY.get((name, arrivals))
    if why is None:
        raise UsageError(f"{_flag(name)}: expected {wanted} beside it, got {_flag(arrivals)}: leave one out")
    raise UsageError(f"{_flag(name)}: expected none beside {_flag(arrivals)}, got one: {why}")


def _check_processes(options: argparse.Namespace) -> None:
    if options.burstiness is not None and options.arrivals not in (None, "gamma"):
        raise UsageError(
            f"--burstiness: expected --arrivals gamma beside it, got {options.arrivals}, which has its own"
        )
    if options.arrivals == "gamma" and options.burstiness is None:
        raise UsageError(
            "--arrivals gamma: expected --burstiness B beside it, got none: 1 is Poisson, above it are bursts"
        )


def _check_prompts(options: argparse.Namespace) -> None:
    if options.exact_prompts and options.prompts is None and options.dataset is None:
        raise UsageError("--exact-prompts: expected --prompts or --dataset beside it, got neither")
    for name in ("prompt_tokens", "max_tokens"):
        if getattr(options, name) == TRACE and options.replay is None:
            raise UsageError(f"{_flag(name)} trace: expected --replay FILE beside it, got none: give a number")


def _flag(name: str) -> str:
    return _FLAGS.get(name) or "--" + name.replace("_", "-")
