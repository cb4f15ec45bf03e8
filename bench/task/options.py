"""The options of a task's run beside what its file declares, and those of how its records are read.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct

from ...configuration.benchmark_options import EFFORT, MAX_TOKENS, MODEL, READ, TEMPERATURE
from ...configuration.declared_options import Option
from ...configuration.values import FilePath, Text, WholeNumber

TITLE = "a task"


class Options(Struct, frozen=True):
    """The options of a task's run."""

    model: Annotated[tuple[str, ...], MODEL]
    file: Annotated[
        str | None,
        Option(
            FilePath("the file of a task"),
            "FILE[:NAME]",
            "the file that declares the task, and its name where there are several: the same as `run FILE.py:NAME`",
        ),
    ] = None
    temperature: Annotated[tuple[float | None, ...], TEMPERATURE.by_default("as the task says")] = ()
    reasoning_effort: Annotated[tuple[str, ...], EFFORT.by_default("as the task says")] = ()
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("as the task says")] = None
    trials: Annotated[
        int | None,
        Option(WholeNumber("trials", 1, 10_000), "N", "how often each row is asked (default: as the task says)"),
    ] = None
    limit: Annotated[int | None, Option(WholeNumber("rows"), "N", "only the first N rows of the data")] = None
    set: Annotated[
        tuple[str, ...],
        Option(
            Text("a parameter of the task's file, as doubts=3"),
            "NAME=VALUE",
            "values of parameters that the task's file reads with ms.parameter; several after one flag, or the flag "
            "several times",
        ),
    ] = ()


class Readings(Struct, frozen=True):
    """The options of how `run`, `score` and `report` read records. None: as the run did."""

    read: Annotated[Literal["unscored", "literal"] | None, READ] = None
    combine: Annotated[
        Literal["mean", "majority", "any"] | None,
        Option(
            help="how the trials of a row combine: mean, majority (1 where more than half score at least 0.5) or any "
            "(the best of them) (default: as the task says)",
        ),
    ] = None
    unreadable: Annotated[
        Literal["skip", "zero"] | None,
        Option(
            help="answers that are empty or cannot be read: skip leaves them out (default), zero scores them 0",
        ),
    ] = None
    task: Annotated[
        str | None,
        Option(
            FilePath("the file of a task"),
            "FILE[:NAME]",
            "score the records by the scorers of this file's task, which is executed; the run's own scores stay",
            verbs=("score",),
        ),
    ] = None


def options_of_word(word: str, *, has_run: bool = False) -> dict[str, Any] | None:
    """Returns the options that a command-line word stands for: `FILE.py`, `FILE.py:NAME`, or a TOML file with a
    `[task]` table. A TOML file with a `[run]` table counts only with `has_run`. None for any other word."""
    path, _ = split_name(word)
    if path.suffix == ".py":
        return {"file": word}
    if path.suffix != ".toml" or not path.is_file():
        return None
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return None
    return {"file": word} if "task" in tables and (has_run or "run" not in tables) else None


def split_name(text: str) -> tuple[Path, str | None]:
    """Returns the path and the name in `FILE.py:NAME`; None for the name if there is none."""
    path, colon, name = text.rpartition(":")
    if colon and path.endswith((".py", ".toml")):
        return Path(path).expanduser(), name
    return Path(text).expanduser(), None
