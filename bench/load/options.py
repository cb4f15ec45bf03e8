"""The options of `millstream load`. Light, since `--help` needs it; `spec_from_options` interprets them."""

from __future__ import annotations

import argparse
from typing import Any

from ...configuration import values
from ...configuration.benchmark_options import listed
from ...configuration.declared_options import flag
from ...configuration.options import add_output, add_sending
from ...configuration.values import Duration, ModelName, Number, Text, ValueKind, WholeNumber, WordChoice
from ..evaluation.declarations import declarations
from . import option_kinds as kinds

# Help of the sending options for load tests, where it differs from that for runs.
_MEANT = {
    "rpm": "requests a minute that each model's lane keeps to (default: none, whatever --config declares, since a "
    "quota of our own would hide what lies beyond it)",
    "tpm": "input and output tokens a minute that each model's lane keeps to (default: none, as for --rpm)",
    "concurrency": "calls in flight that each model's lane admits; what waits there counts as latency (default: no "
    "fewer than --most-in-flight or --in-flight)",
    "max_cost": "begin no call that may bring the cost of all models above this",
    "cache": "where the lanes' last minute is kept, so that a run afterwards keeps its quota; no answer is stored "
    "(default: the user's cache folder)",
    # Each call is sent once, whatever is stored: these do nothing here.
    "mode": argparse.SUPPRESS,
    "patience": argparse.SUPPRESS,
    "timeout": "deadline for a whole call, which then has failed (default: 10m)",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="PROVIDER/MODEL",
        nargs="+",
        type=flag(ModelName()),
        help="who is asked; several at once, each with all the calls",
    )
    parser.add_argument(
        "--out", type=flag(Text("a folder")), metavar="DIR", help="the test's folder, in which no test may stand yet"
    )
    parser.add_argument("--no-report", action="store_true", help="write no report.html and tables/")
    parser.add_argument(
        "--plan", action="store_true", help="say what would be sent and what it may cost; send nothing, write nothing"
    )
    _add_arrivals(parser)
    _add_search(parser)
    _add_prompts(parser)
    _add_limits(parser)
    add_sending(parser, helps=_MEANT)
    add_output(parser)


def _add(group: argparse._ArgumentGroup, name: str, kind: ValueKind[Any], metavar: str, told: str) -> None:
    group.add_argument(f"--{name}", type=flag(kind), metavar=metavar, help=told)


def _add_arrivals(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when calls are due: one of these six (default: --rate 1)")
    _add(group, "rate", kinds.RATE, "R", "R calls a second, whatever the server does (open loop)")
    _add(group, "ramp", kinds.Ramp(), "FROM:TO", "a rate that rises or falls evenly over --duration")
    _add(group, "steps", kinds.Rates(), "R,R,…", "one rate after the other, each for --step-time")
    _add(
        group,
        "replay",
        Text("a file of time stamps"),
        "FILE",
        "the time stamps of a trace: CSV, JSON lines or a number a line; also the calls.jsonl of a test",
    )
    _add(
        group,
        "in-flight",
        values.CONCURRENCY,
        "N",
        "N calls in flight at any time, each begun as another ends (closed loop: it slows down with the server)",
    )
    _add(
        group,
        "goal",
        Text('a goal, as "p99 first token <= 2 s and errors <= 0.1%"'),
        "GOAL",
        'search the highest rate at which this is kept, as in "p99 first token <= 2 s and errors <= 0.1%%"; the times '
        "are latency; first token, or ttft; token (for each one after the first), or tpot; gap (between two pieces of "
        "text), or itl",
    )
    group = parser.add_argument_group("how they arrive")
    _add(
        group,
        "arrivals",
        WordChoice(("poisson", "constant", "gamma")),
        "PROCESS",
        "poisson (default): as of many users who know nothing of each other; constant: evenly; gamma: in bursts",
    )
    _add(
        group,
        "burstiness",
        Number("a variance in times that of a Poisson process", 0.01, 1_000),
        "B",
        "of gamma: how many times the variance of a Poisson process; above 1 come bursts",
    )
    _add(group, "step-time", Duration("a time"), "TIME", "of each of --steps (default: 30s)")
    _add(group, "speed", Number("a factor", 1e-6, 1e9), "X", "replay so many times as fast (default: 1)")


def _add_search(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for --goal")
    group.add_argument(
        "--from",
        dest="lowest",
        type=flag(kinds.RATE),
        metavar="R",
        help="the rate to begin at, in calls a second (default: 1)",
    )
    group.add_argument(
        "--to",
        dest="highest",
        type=flag(kinds.RATE),
        metavar="R",
        help="the highest rate to try (default: 1,000)",
    )
    _add(
        group,
        "precision",
        kinds.Percentage(),
        "SHARE",
        "how far apart kept and missed may be in the end (default: 5%%)",
    )


def _add_prompts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is asked: one of the first three")
    _add(
        group,
        "prompt-tokens",
        kinds.Lengths(),
        "LENGTH",
        "words of ours, so many tokens: N, LOW-HIGH, lognormal:MEDIAN,P99, or trace for those that --replay tells "
        "(default: 200)",
    )
    _add(
        group,
        "prompts",
        Text("a file of prompts"),
        "FILE",
        "prompts of yours, one a line: text, a JSON string, or an object with `prompt` or `messages`",
    )
    offering = [benchmark for benchmark in declarations().values() if benchmark.prompts]
    _add(
        group,
        "dataset",
        Text(f"{', '.join(benchmark.name for benchmark in offering)} or a data set"),
        "NAME|PATH",
        f"{listed([benchmark.prompts for benchmark in offering], 'or')}: "
        f"{listed([benchmark.name for benchmark in offering], 'and')} are the samples that come with millstream",
    )
    group.add_argument(
        "--exact-prompts",
        action="store_true",
        help="send prompts of a file or data set to the letter; else each begins with other random letters, so that no "
        "cache of prefixes answers",
    )
    _add(
        group,
        "max-tokens",
        kinds.MaxTokens(),
        "N",
        "the most tokens of an answer, or trace for those that --replay tells (default: 64)",
    )
    _add(group, "temperature", values.TEMPERATURE, "T", "as in a run (default: not sent)")
    group.add_argument("--whole", action="store_true", help="ask for whole answers; else they are streamed")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how long, and which part counts")
    _add(
        group,
        "duration",
        Duration("a time"),
        "TIME",
        "begin calls for so long: seconds, or 90s, 10m (default: 60s, where --calls, --steps, --replay and --goal say "
        "nothing else)",
    )
    _add(group, "calls", WholeNumber("calls"), "N", "begin so many calls, of all models together")
    _add(
        group,
        "most-in-flight",
        values.CONCURRENCY,
        "N",
        "of each model at once; a call that is due beyond them waits, and that counts (default: 2,000)",
    )
    _add(group, "drain", kinds.Time("a time"), "TIME", "wait so long for what is in flight at the end (default: 60s)")
    _add(group, "warm-up", kinds.Time("a time"), "TIME", "leave out calls that are due so early (default: 0)")
    _add(group, "cool-down", kinds.Time("a time"), "TIME", "leave out calls that are due so near the end (default: 0)")
    _add(
        group,
        "promise",
        Text('times, as "first token <= 1 s, latency <= 10 s, token <= 50 ms"'),
        "TIMES",
        'count the answers that keep all of these as goodput, as in "first token <= 1 s, latency <= 10 s"; also token; '
        "ttft and tpot are understood too",
    )
    _add(
        group,
        "seed",
        WholeNumber("a seed", 0),
        "N",
        "the same seed draws the same arrivals, lengths and order of prompts (default: 0)",
    )
