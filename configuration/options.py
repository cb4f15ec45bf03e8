"""The options of every verb that sends: their flags, and the struct that flags, files and manifests fill.

One table has the kind of each option; flags and files are both read through it. Light to import, since every `--help`
needs it. A benchmark's options: benchmark_options.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from . import values
from .values import Text, ValueKind, WordChoice

_T = TypeVar("_T")

MODES = ("live", "record", "replay", "strict")
TIERS = ("standard", "flex", "priority", "flex-then-standard")

SENDING: Mapping[str, ValueKind[Any]] = MappingProxyType(
    {
        "base-url": values.BaseUrl(),
        "rpm": values.RPM,
        "tpm": values.TPM,
        "concurrency": values.CONCURRENCY,
        "max-cost": values.MAX_COST,
        "tier": WordChoice(TIERS),
        "cache": values.CacheFolder(),
        "mode": WordChoice(MODES),
        "patience": values.PATIENCE,
        "timeout": values.TIMEOUT,
    }
)
RETRIEVAL: Mapping[str, ValueKind[Any]] = MappingProxyType(
    {
        "max-age": values.Age(),
        "snapshot": Text("a file that `cache export` wrote"),
        "allow-host": values.Several(values.AllowedHost()),
    }
)
_SENDING_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "base-url": ("URL", "send every model's calls to this address, in the protocol of the model's provider"),
        "rpm": ("N", "requests a minute, for each model's lane"),
        "tpm": ("N", "input and output tokens a minute, for each model's lane"),
        "concurrency": ("N", "calls in flight, for each model's lane (default: 128)"),
        "max-cost": ("DOLLARS", "stop before the calls can cost more; what a run's folder cost before counts"),
        "tier": ("TIER", "the provider's tier of service: standard, flex (cheaper and slower), priority (dearer), or "
                         "flex-then-standard: at standard where flex has no room (default: the provider's)"),
        "cache": ("DIR", "where answers are kept (default: the user's cache folder)"),
        "mode": ("MODE", "live: take nothing from earlier runs; record: read and write (default); replay: read, send "
                         "what is missing; strict: never send"),
        "patience": ("TIME", "wait so long for a provider that is down: seconds, or 90s, 10m (default: 10m)"),
        "timeout": ("TIME", "deadline for a whole call (default: 10m)"),
        "max-age": ("AGE", "searches and pages of earlier runs are taken if younger: 90m, 12h, 7d (default: 24h)"),
        "snapshot": ("FILE", "take answers from this file: with --mode strict from nothing else, with replay (then "
                             "the default) send what it lacks"),
        "allow-host": ("HOST", "pages of this host may lie at an address that is not public: NAME[:PORT], *.NAME, or "
                               "NAME=ADDRESS:PORT to take them from there; may be given several times"),
    }
)  # fmt: skip


@dataclass(frozen=True)
class SendingOptions:
    """The options of sending. None: not given, so that a file or a default decides."""

    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    max_cost: float | None = None
    tier: str | None = None
    cache: str | None = None
    mode: str | None = None
    patience: float | None = None
    timeout: float | None = None
    config: str | None = None
    max_age: float | None = None
    snapshot: str | None = None
    allow_host: tuple[str, ...] | None = None
    sink: str | None = None

    def over(self, other: SendingOptions) -> SendingOptions:
        """Returns these options, with the other's for those that are not set."""
        names = [field.name for field in fields(self)]
        return SendingOptions(**{name: getattr(other if getattr(self, name) is None else self, name) for name in names})

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _IntoSending(argparse.Action):
    """Puts a flag's value into `sending` of the namespace. `const`: whether the flag may be given several times."""

    def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, option: object = None) -> None:
        if self.const:
            value = (*(getattr(namespace.sending, self.dest) or ()), value)
        namespace.sending = replace(namespace.sending, **{self.dest: value})


class FlagReader(Generic[_T]):
    """Reads the text of a flag as one kind of value, for argparse."""

    def __init__(self, kind: ValueKind[_T]) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<FlagReader of {self.kind.expected}>"

    def __call__(self, text: str) -> _T:
        try:
            return values.read(self.kind, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


def flag(kind: ValueKind[_T]) -> FlagReader[_T]:
    """Returns the reader of a flag's text as this kind of value."""
    return FlagReader(kind)


def add_sending(
    parser: argparse.ArgumentParser, names: Iterable[str] = SENDING, helps: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Adds the options of every verb that sends, or some of them. What is given stands in `sending` of the namespace,
    a SendingOptions."""
    parser.set_defaults(sending=SendingOptions())
    group = parser.add_argument_group("how it is sent (a flag goes before the same setting in a file)")
    for name in names:
        metavar, told = _SENDING_HELP[name]
        _add(group, name, SENDING[name], metavar, helps.get(name, told))
    _add(group, "config", Text("a file"), "FILE", "lanes, providers and prices, in TOML or YAML")


def add_retrieval(parser: argparse.ArgumentParser, *, is_shown: bool = True) -> None:
    """Adds the options of verbs that may search and read pages; without `is_shown` those that matter for these alone
    are not in the help."""
    group = parser.add_argument_group("searches and pages" if is_shown else "repeats")
    for name, kind in RETRIEVAL.items():
        metavar, told = _SENDING_HELP[name]
        _add(group, name, kind, metavar, told if is_shown or name == "snapshot" else argparse.SUPPRESS)


def add_sink(parser: argparse.ArgumentParser) -> None:
    """Adds --sink, for verbs that fill a run's folder."""
    told = "give every outcome to this sink too, once the run's folder has it: one that an installed package offers"
    _add(parser, "sink", values.SinkName(), "NAME[:ARGUMENT]", told)


def _add(parser: argparse._ActionsContainer, name: str, kind: ValueKind[Any], metavar: str, told: str) -> None:
    one = kind.kind if isinstance(kind, values.Several) else kind
    parser.add_argument(
        f"--{name}",
        action=_IntoSending,
        const=one is not kind,
        type=flag(one),
        default=argparse.SUPPRESS,
        metavar=metavar,
        help=told,
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options of summary and progress."""
    group = parser.add_argument_group("what is shown")
    group.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")
    group.add_argument("--no-progress", action="store_true", help="no progress on stderr")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds --no-report, for verbs that end with a run's scores."""
    parser.add_argument("--no-report", action="store_true", help="write no report.html and tables/ after the scores")
