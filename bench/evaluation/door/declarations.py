"""The names and options of all benchmarks, both built-in ones and those of installed packages.

Light to import, since every `--help` needs it. Packages are searched only for a name that is not built in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from ....configuration.benchmark_options import Declaration
from ....configuration.errors import UsageError
from ....engine.fault import LocalFault
from ....engine.folder_file import read_whole
from .data_command import DataCommand

BUILT_IN = ("millstone", "chameleon", "task", "sycon")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def declarations() -> dict[str, Declaration]:
    """Returns the built-in benchmarks' declarations by name."""
    return {name: _declaration(name) for name in BUILT_IN}


def of_folders(folders: Iterable[str]) -> dict[str, Declaration]:
    """Returns the built-in declarations and those of the benchmarks whose runs these folders hold. Skips an unreadable
    manifest; the verb that needs it reports the error."""
    by_name = declarations()
    for folder in folders:
        try:
            name = json.loads(read_whole(Path(folder) / "manifest.json"))["specification"]["benchmark"]
        except (OSError, LocalFault, ValueError, LookupError, TypeError):
            continue
        if isinstance(name, str) and name not in by_name and (other := find(name)) is not None:
            by_name[name] = other
    return by_name


def find(name: str) -> Declaration | None:
    """Returns the declaration of a benchmark; None if no benchmark has the name. Raises UsageError or
    ConfigurationError if a package's benchmark can't be used."""
    if name in BUILT_IN:
        return _declaration(name)
    if not _NAME.fullmatch(name):
        return None
    from ....wiring.plugins import benchmark_of_packages

    made = benchmark_of_packages(name)
    return None if made is None else _checked(name, made)


def of_word(word: str) -> tuple[Declaration, dict[str, Any]] | None:
    """Returns the benchmark that a command-line word names, or stands for as FILE.py does, and the options that follow
    from the word; None if it names no benchmark."""
    if (named := find(word)) is not None:
        return named, {}
    for name in BUILT_IN:
        options_of_word = getattr(import_module(f"...{name}.options", __package__), "options_of_word", None)
        if options_of_word is not None and (options := options_of_word(word)) is not None:
            return _declaration(name), options
    return None


def reproduction(word: str) -> Path | None:
    """Returns the run file of this package that a word such as `reproduce/millstone.toml` names; None: no such."""
    return next((path for name, path in _reproductions() if word == name), None)


def reproductions() -> tuple[str, ...]:
    """Returns the words that name run files of this package."""
    return tuple(name for name, _ in _reproductions())


def _reproductions() -> list[tuple[str, Path]]:
    bench = Path(__file__).parent.parent.parent
    every = [(f"reproduce/{name}.toml", bench / name / "reproduce.toml") for name in BUILT_IN]
    return [(name, path) for name, path in every if path.is_file()]


def _declaration(name: str) -> Declaration:
    module = import_module(f"...{name}.options", __package__)
    prompts, data = getattr(module, "PROMPTS", ""), getattr(module, "DATA", None)
    return Declaration(name, module.TITLE, module.Options, module.Readings, prompts, data)


def _checked(name: str, made: Any) -> Declaration:
    """Validates the benchmark that an installed package offers and returns its declaration."""
    structs: list[type[Struct]] = []
    for part in ("Options", "Readings"):
        kind = getattr(made, part, None)
        if not (isinstance(kind, type) and issubclass(kind, Struct)):
            raise UsageError(f"benchmark {name}: its {part} must be a msgspec.Struct, got {kind!r}")
        structs.append(kind)
    for part in ("title", "prompts"):
        if not isinstance(getattr(made, part, None), str):
            raise UsageError(f"benchmark {name}: its {part} must be a text, got {getattr(made, part, None)!r}")
    data = getattr(made, "data", None)
    if not isinstance(data, DataCommand | None):
        raise UsageError(f"benchmark {name}: its data must be a DataCommand, got {data!r}")
    if (offered_name := getattr(made, "name", None)) != name:
        raise UsageError(f"benchmark {name}: its name is {offered_name!r}: give its entry point the same")
    options, readings = structs
    return Declaration(name, made.title, options, readings, made.prompts, data)
