"""Which benchmark a folder of records is of: its manifest says so, else its first record shows it.

Owns that one question, and that readings of one benchmark are not asked of another's records.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..engine.run_folder import MANIFEST, RECORDS, read_manifest
from .batch.place import refuse_batch
from .benchmark_options import KINDS, READINGS
from .refusal import UsageError

_MILLSTONE_READINGS = (
    "stance",
    "silence",
    "intervals",
    "issue-set",
    "fix-orientation",
    "consistent",
    "arguments",
    "topics",
)
_OF_A_TURN = {"conversation", "retrieved"}


def benchmark_of(folder: Path) -> str:
    """Raises UsageError where there are no records at all, or those of a benchmark that is not ours."""
    refuse_batch(folder)
    if (folder / MANIFEST).exists():
        benchmark = str(read_manifest(folder)["specification"].get("benchmark"))
        if benchmark not in KINDS:
            known = " or ".join(KINDS)
            raise UsageError(f"{folder}: expected a run of {known}, got one of {benchmark}")
        return benchmark
    path = folder / RECORDS
    if not path.is_file():
        raise UsageError(f"{folder}: expected a folder with {RECORDS}, got none there")
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip()), b"{}")
        # Not by msgspec, which takes no half character; other programs write such as an escape.
        fields = json.loads(first)
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    except (ValueError, RecursionError):
        return "millstone"  # its reader says what is wrong with the line
    is_turn = isinstance(fields, dict) and not _OF_A_TURN.isdisjoint(fields)
    return "chameleon" if is_turn else "millstone"


def refuse_readings_of_others(benchmark: str, folder: Path, options: argparse.Namespace) -> None:
    foreign, owner = (_MILLSTONE_READINGS, "MillStone") if benchmark == "chameleon" else (tuple(READINGS), "Chameleon")
    for name in foreign:
        if getattr(options, name.replace("-", "_"), None) is not None:
            raise UsageError(f"--{name} reads records of {owner}, and {folder} holds {benchmark}'s: leave it out")
