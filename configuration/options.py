"""The options of every verb that sends, as the fields of a struct that flags, files and manifests fill; and those of
summary, progress and report.

Light to import, since every `--help` needs it. A benchmark's options: benchmark_options.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Struct, structs

from .declared_options import DeclaredOption, Option, add_flags, declared, made_from
from .values import (
    AGE,
    ALLOWED_HOST,
    BASE_URL,
    CACHE_PLACE,
    CLUSTER,
    CONCURRENCY,
    MAX_COST,
    PATIENCE,
    RPM,
    SINK_NAME,
    TIMEOUT,
    TPM,
    WORKERS,
    FilePath,
    WordChoice,
)

MODES = ("live", "record", "replay", "strict")
TIERS = ("standard", "flex", "priority", "flex-then-standard")


class CallOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of every verb that sends. None: not given, so that a file or a default decides. One with the name of
    a field of Lane, Settings or RetryPolicy sets that field, or the one that its `sets` names."""

    base_url: Annotated[
        str | None,
        Option(BASE_URL, "URL", "send every model's calls to this address, in the protocol of the model's provider"),
    ] = None
    rpm: Annotated[float | None, Option(RPM, "N", "requests a minute, for each model's lane")] = None
    tpm: Annotated[float | None, Option(TPM, "N", "input and output tokens a minute, for each model's lane")] = None
    concurrency: Annotated[
        int | None,
        Option(
            CONCURRENCY,
            "N",
            "calls in flight, for each model's lane (default: 128; without a quota they grow from 16 to 1,024 at most)",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        Option(MAX_COST, "DOLLARS", "stop before the calls can cost more; what a run's folder cost before counts"),
    ] = None
    tier: Annotated[
        str | None,
        Option(
            WordChoice(TIERS),
            help="the provider's tier of service: standard, flex (cheaper and slower), priority (dearer), or "
            "flex-then-standard: at standard where flex has no room (default: the provider's)",
        ),
    ] = None
    cache: Annotated[
        str | None,
        Option(
            CACHE_PLACE,
            "DIR",
            "where answers are kept (default: the user's cache folder); redis://HOST[:PORT][/DB]: several machines "
            "share them through this server",
        ),
    ] = None
    mode: Annotated[
        str | None,
        Option(
            WordChoice(MODES),
            help="live: take nothing from earlier runs; record: read and write (default); replay: read, send what is "
            "missing; strict: never send",
        ),
    ] = None
    patience: Annotated[
        float | None,
        Option(
            PATIENCE,
            "TIME",
            "wait so long for a provider that is down: seconds, or 90s, 10m (default: 10m)",
            sets="patience_s",
        ),
    ] = None
    timeout: Annotated[
        float | None, Option(TIMEOUT, "TIME", "deadline for a whole call (default: 10m)", sets="timeout_s")
    ] = None
    config: Annotated[
        str | None, Option(FilePath("a file"), "FILE", "lanes, providers and prices, in TOML or YAML")
    ] = None


class SendingOptions(CallOptions, frozen=True):
    """The options of sending, with those of searches, pages and sinks."""

    max_age: Annotated[
        float | None,
        Option(
            AGE,
            "AGE",
            "searches and pages of earlier runs are taken if younger: 90m, 12h, 7d (default: 24h)",
            sets="max_age_s",
        ),
    ] = None
    snapshot: Annotated[
        str | None,
        Option(
            FilePath("a file that `cache export` wrote"),
            "FILE",
            "take answers from this file: with --mode strict from nothing else, with replay (then the default) send "
            "what it lacks",
        ),
    ] = None
    allow_host: Annotated[
        tuple[str, ...] | None,
        Option(
            ALLOWED_HOST,
            "HOST",
            "pages of this host may lie at an address that is not public: NAME[:PORT], *.NAME, or NAME=ADDRESS:PORT "
            "to take them from there; may be given several times",
            is_repeated=True,
            sets="allow_hosts",
        ),
    ] = None
    sink: Annotated[
        str | None,
        Option(
            SINK_NAME,
            "NAME[:ARGUMENT]",
            "give every outcome to this sink too, once the run's folder has it: one that an installed package offers",
        ),
    ] = None

    ray: Annotated[
        str | None,
        Option(
            CLUSTER,
            "ADDRESS|local",
            "let processes of this Ray cluster carry the calls; local: of one that is started on this machine for "
            "the run",
            sets="cluster",
        ),
    ] = None
    workers: Annotated[
        int | None,
        Option(WORKERS, "N", "how many processes of the cluster carry calls (default: one a core)", beside=("ray",)),
    ] = None

    def given(self) -> dict[str, Any]:
        """Returns the options that are set, by name."""
        return {name: value for name, value in structs.asdict(self).items() if value is not None}

    def over(self, other: SendingOptions) -> SendingOptions:
        """Returns these options, with the other's for those that are not set."""
        return structs.replace(other, **self.given())


SENDING: Mapping[str, DeclaredOption] = MappingProxyType({option.name: option for option in declared(SendingOptions)})
"""The options of sending, by the fields' names."""


def add_sending(
    parser: argparse.ArgumentParser,
    names: Iterable[str] = CallOptions.__struct_fields__,
    helps: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Adds the options of every verb that sends, or some of them, for `with_sending`."""
    parser.set_defaults(sending=None)
    group = parser.add_argument_group("how it is sent (a flag goes before the same setting in a file)")
    _add(group, dict.fromkeys((*names, "config")), helps)


def with_sending(parsed: argparse.Namespace) -> argparse.Namespace:
    """Returns parsed options with a SendingOptions in `sending`, if the parser has those of sending."""
    if "sending" in parsed:
        parsed.sending = made_from(SendingOptions, parsed)
    return parsed


def add_retrieval(parser: argparse.ArgumentParser, *, is_shown: bool = True) -> None:
    """Adds the options of verbs that may search and read pages; without `is_shown` those that matter for these alone
    are not in the help."""
    group = parser.add_argument_group("searches and pages" if is_shown else "repeats")
    hidden = {} if is_shown else dict.fromkeys(("max_age", "allow_host"), argparse.SUPPRESS)
    _add(group, ("max_age", "snapshot", "allow_host"), hidden)


def add_sink(parser: argparse.ArgumentParser) -> None:
    """Adds --sink and those of a cluster, for verbs that fill a run's folder."""
    _add(parser, ("sink",))
    add_cluster(parser)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a cluster whose workers carry calls."""
    _add(parser, ("ray", "workers"))


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a verb that goes on with a run."""
    add_sending(parser)
    add_retrieval(parser)
    add_sink(parser)
    add_report(parser)
    add_output(parser)


def _add(
    group: argparse._ActionsContainer, names: Iterable[str], helps: Mapping[str, str] = MappingProxyType({})
) -> None:
    add_flags(group, (structs.replace(SENDING[name], help=helps.get(name, SENDING[name].help)) for name in names))


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options of summary and progress."""
    group = parser.add_argument_group("what is shown")
    group.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")
    group.add_argument("--no-progress", action="store_true", help="no progress on stderr")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds --no-report, for verbs that end with a run's scores."""
    parser.add_argument("--no-report", action="store_true", help="write no report.html and tables/ after the scores")
