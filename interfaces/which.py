"""Which benchmark a folder of records is of: its manifest says so, else its first record shows it.

Owns that one question, and that readings of one benchmark are not asked of another's records.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from msgspec import Struct

from ..engine.run_folder import MANIFEST, RECORDS, read_manifest
from .benchmark_options import KINDS, READINGS
from .refusal import UsageError

_MILLSTONE_READINGS = ("stance", "issue-set", "consistent", "arguments", "topics")


class _Shape(Struct):
    conversation: msgspec.Raw = msgspec.Raw()
    retrieved: msgspec.Raw = msgspec.Raw()


def benchmark_of(folder: Path) -> str:
    """Raises UsageError where there are no records at all, or those of a benchmark that is not ours."""
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
        shape = msgspec.json.decode(first, type=_Shape)
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeError):
        return "millstone"  # its reader says what is wrong with the line
    return "chameleon" if bytes(shape.conversation) or bytes(shape.retrieved) else "millstone"


def refuse_readings_of_others(benchmark: str, folder: Path, options: argparse.Namespace) -> None:
    foreign, owner = (_MILLSTONE_READINGS, "MillStone") if benchmark == "chameleon" else (tuple(READINGS), "Chameleon")
    for name in foreign:
        if getattr(options, name.replace("-", "_"), None) is not None:
            raise UsageError(f"--{name} reads records of {owner}, and {folder} holds {benchmark}'s: leave it out")
