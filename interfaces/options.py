"""The options of verbs that run benchmarks: the flags, and the structs that flags, files and manifests all fill.

One table says what each option may be; flags and files are both read through it. Light to import, since every
`--help` needs it. Builds nothing and opens no file but through `Path`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from . import values
from .values import Choice, Kind, Text, Whole

_T = TypeVar("_T")

MODES = ("live", "record", "replay", "strict")

SENDING: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        "base-url": values.BaseUrl(),
        "rpm": values.RPM,
        "tpm": values.TPM,
        "concurrency": values.CONCURRENCY,
        "max-cost": values.MAX_COST,
        "cache": values.CacheFolder(),
        "mode": Choice(MODES),
        "patience": values.PATIENCE,
        "timeout": values.TIMEOUT,
    }
)
_SENDING_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "base-url": ("URL", "send every model's calls to this address, in the protocol of the model's provider"),
        "rpm": ("N", "requests a minute, for each model's lane"),
        "tpm": ("N", "input and output tokens a minute, for each model's lane"),
        "concurrency": ("N", "calls in flight, for each model's lane (default: 128)"),
        "max-cost": ("DOLLARS", "stop before the run can cost more; what the run folder already cost counts"),
        "cache": ("DIR|URL", "where answers are kept (default: the user's cache folder; no URL in this version)"),
        "mode": ("MODE", "live: take nothing from earlier runs; record: read and write (default); replay: read, send "
                         "what is missing; strict: never send"),
        "patience": ("TIME", "wait so long for a provider that is down: seconds, or 90s, 10m (default: 10m)"),
        "timeout": ("TIME", "deadline for a whole call (default: 10m)"),
    }
)  # fmt: skip

MILLSTONE: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        "max-tokens": Whole("tokens an answer", 1, 100_000_000),
        "stance": Choice(("paper", "careful")),
        "dataset": Text("the path of a data set"),
        "protocol": Choice(("paper", "released")),
        "citations": Choice(("own", "cumulative")),
        "issues": Text("all, controversial, a file of ids, or ids between commas"),
        "limit": Whole("issues"),
        "templates": Whole("templates", 1, 6),
        "trials": Whole("trials", 1, 10_000),
    }
)
_MILLSTONE_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "max-tokens": ("N", "tokens of an answer (default: 600 for Claude, 100 for OpenAI and Llama, else not sent)"),
        "stance": ("READING", "how a text becomes a stance: paper (default) or careful"),
        "dataset": ("PATH", "a folder of issues or a data set file (default: the 12 issues that come with this)"),
        "protocol": ("NAME", "paper (default) or released: which argument configurations are asked"),
        "citations": ("HOW", "own (default) or cumulative: which citations stand with an argument"),
        "issues": ("WHICH", "all (default), controversial, a file of ids, or ids between commas"),
        "limit": ("N", "only the first N of these issues"),
        "templates": ("N", "wordings of each question, 1 to 6 (default: 6)"),
        "trials": ("N", "repeats of each configuration (default: 15)"),
    }
)  # fmt: skip


@dataclass(frozen=True)
class Sending:
    """How calls are sent. None: not said, so that a file or a default decides."""

    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    max_cost: float | None = None
    cache: str | None = None
    mode: str | None = None
    patience: float | None = None
    timeout: float | None = None
    config: str | None = None

    def over(self, other: Sending) -> Sending:
        """These options where they are set, else the other's."""
        names = [field.name for field in fields(self)]
        return Sending(**{name: getattr(other if getattr(self, name) is None else self, name) for name in names})

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class MillstoneOptions:
    """What a MillStone run is asked to be. `dataset` None: the sample data."""

    model: tuple[str, ...]
    temperature: tuple[float, ...] = ()
    max_tokens: int | None = None
    stance: str = "paper"
    dataset: str | None = None
    protocol: str = "paper"
    citations: str = "own"
    issues: str = "all"
    limit: int | None = None
    templates: int = 6
    trials: int = 15

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def flag(kind: Kind[_T]) -> Callable[[str], _T]:
    """A kind of value as argparse wants it."""

    def read(text: str) -> _T:
        try:
            return values.read(kind, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def add_sending(parser: argparse.ArgumentParser, names: Iterable[str] = SENDING) -> None:
    """The options of every verb that sends, or some of them."""
    group = parser.add_argument_group("how it is sent (a flag goes before the same setting in a file)")
    for name in names:
        kind, (metavar, told) = SENDING[name], _SENDING_HELP[name]
        group.add_argument(f"--{name}", type=flag(kind), metavar=metavar, help=told)
    group.add_argument(
        "--config", type=flag(Text("a file")), metavar="FILE", help="lanes, providers and prices, in TOML or YAML"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """How the summary and the progress are shown."""
    group = parser.add_argument_group("what is shown")
    group.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")
    group.add_argument("--no-progress", action="store_true", help="no progress on stderr")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Of verbs that end with a run's scores."""
    parser.add_argument("--no-report", action="store_true", help="write no report.html and tables/ after the scores")


def add_readings(parser: argparse.ArgumentParser) -> None:
    """The readings that scores can be computed under as well."""
    parser.add_argument(
        "--stance",
        type=flag(Choice(("paper", "careful"))),
        metavar="READING",
        help="read stances from the texts anew: paper or careful (default: as they were recorded)",
    )
    parser.add_argument(
        "--issue-set",
        type=flag(Choice(("107", "104"))),
        metavar="N",
        help="107: every issue asked (default); 104: without the three that the published scores leave out",
    )


def add_millstone(parser: argparse.ArgumentParser) -> None:
    """The options of the grid."""
    group = parser.add_argument_group("run millstone")
    group.add_argument(
        "--model",
        nargs="+",
        action="extend",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="who is asked; several after one flag, or the flag several times",
    )
    group.add_argument(
        "--temperature",
        nargs="+",
        action="extend",
        type=flag(values.TEMPERATURE),
        metavar="T",
        help="ask at each of these (default: not sent)",
    )
    for name, kind in MILLSTONE.items():
        metavar, told = _MILLSTONE_HELP[name]
        group.add_argument(f"--{name}", type=flag(kind), metavar=metavar, help=told)


def sending_from(options: argparse.Namespace) -> Sending:
    return Sending(**{field.name: getattr(options, field.name, None) for field in fields(Sending)})


def millstone_given(options: argparse.Namespace) -> dict[str, Any]:
    """The grid's options that were set, by their names in MillstoneOptions."""
    found = {field.name: getattr(options, field.name) for field in fields(MillstoneOptions)}
    return {name: value for name, value in found.items() if value is not None}


def millstone_from(given: Mapping[str, Any], base: Path) -> MillstoneOptions:
    """The options of one run; paths are taken from `base`. A model or temperature named twice counts once."""
    settled = dict(given)
    for name in ("model", "temperature"):
        if name in settled:
            settled[name] = tuple(dict.fromkeys(settled[name]))
    if settled.get("dataset") is not None:
        settled["dataset"] = str((base / Path(settled["dataset"]).expanduser()).absolute())
    return MillstoneOptions(**settled)
