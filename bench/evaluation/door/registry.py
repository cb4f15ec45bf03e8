"""Finds benchmarks by name or by a folder's run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ....configuration.benchmark_options import Known, RunOptions, foreign_to, listed
from ....configuration.declared_options import read_kept
from ....configuration.errors import UsageError
from ....configuration.options import SendingOptions
from ....engine.folder_file import lines_in
from ....engine.runs.run_folder import MANIFEST, RECORDS, no_run_at, read_manifest
from ....wiring.plugins import benchmark_of_packages
from .benchmark import ItemBenchmark, PublishedCounts
from .declarations import BUILT_IN, declarations, find


def benchmark_named(name: str) -> ItemBenchmark[Any]:
    """Returns a benchmark, built in or from an installed package. Raises UsageError if no benchmark has the name."""
    if name in BUILT_IN:
        benchmark: ItemBenchmark[Any] = import_module(f"...{name}.benchmark", __package__).BENCHMARK
        return benchmark
    if find(name) is None:
        raise UsageError(f"benchmark {name!r} is unknown; known: {', '.join(BUILT_IN)}")
    made = benchmark_of_packages(name)
    if not isinstance(made, ItemBenchmark):
        raise UsageError(f"benchmark {name}: expected a millstream.ItemBenchmark, got {made!r}")
    return made


def benchmarks() -> list[ItemBenchmark[Any]]:
    return [benchmark_named(name) for name in BUILT_IN]


def rank_of(benchmark: ItemBenchmark[Any]) -> tuple[int, str]:
    """Returns a sort key: built-in benchmarks come first, in their fixed order, then others by name."""
    name = benchmark.name
    return (BUILT_IN.index(name) if name in BUILT_IN else len(BUILT_IN)), name


def benchmark_of(folder: Path, manifest: Mapping[str, Any] | None = None) -> ItemBenchmark[Any]:
    """Returns the benchmark of a folder of records, from its manifest (read if it is not given), else from its first
    record. Raises UsageError if there are no records, or those of an unknown benchmark."""
    if manifest is not None or (folder / MANIFEST).exists():
        name = str((manifest or read_manifest(folder))["specification"].get("benchmark"))
        if find(name) is None:
            names = listed(list(declarations()), "or")
            raise UsageError(f"{folder / MANIFEST}: expected a run of {names}, got one of {name}")
        return benchmark_named(name)
    path = folder / RECORDS
    if not path.is_file():
        raise UsageError(no_run_at(folder) or f"{folder}: expected a folder with {RECORDS}, got none there")
    try:
        first = next((line for line in lines_in(path) if line.strip()), b"{}")
        # Not by msgspec, which refuses lone surrogates: other programs write such escapes.
        fields = json.loads(first)
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    except ValueError:
        fields = None
    every = benchmarks()
    owner = next((each for each in every if isinstance(fields, dict) and each.owns(fields)), None)
    return owner or every[0]  # its reader reports what is wrong with the line


def counts_reader() -> tuple[ItemBenchmark[Any], PublishedCounts]:
    """Returns the benchmark that has published tables of counts, and how these are read."""
    return next((each, each.counts) for each in benchmarks() if each.counts is not None)


def own_readings(benchmark: ItemBenchmark[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the given readings that a benchmark has."""
    return {name: value for name, value in given.items() if name in benchmark.Readings.__struct_fields__}


def check_readings(benchmark: ItemBenchmark[Any], folder: Path, given: Iterable[str], known: Known, verb: str) -> None:
    """Raises UsageError if one of the given readings is for another benchmark's records."""
    if (foreign := foreign_to(benchmark.name, given, known, verb)) is not None:
        flag, owner = foreign
        raise UsageError(f"{flag} reads records of {owner.title}, and {folder} holds {benchmark.name}'s: leave it out")


def options_of(manifest: Mapping[str, Any]) -> tuple[RunOptions, SendingOptions]:
    """Returns the run's options and its sending options from a manifest. Raises KeyError or TypeError if another
    program wrote it."""
    name = manifest["specification"]["benchmark"]
    if (benchmark := find(name)) is None:
        raise KeyError(name)
    return benchmark.read_kept(manifest["options"][name]), read_kept(SendingOptions, manifest["options"]["sending"])
