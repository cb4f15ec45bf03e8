"""The options of `millstream load`, and which go together. Light, since `--help` needs it; `spec_from_options`
interprets them."""

from __future__ import annotations

import argparse
from typing import Annotated, Literal

from msgspec import Struct

from ...configuration.benchmark_options import listed
from ...configuration.declared_options import Heading, Option, Positional, add_options
from ...configuration.options import add_cluster, add_output, add_sending
from ...configuration.values import CONCURRENCY, TEMPERATURE, Duration, ModelName, Number, Text, WholeNumber, WordChoice
from ..evaluation.door.declarations import declarations
from .arrivals import Process
from .option_kinds import LENGTHS, MOST_TOKENS, PAUSE, PERCENTAGE, RAMP, RATE, RATES, TRACE

_DUE, _ASKED = "what says when calls are due", "what is asked"
_BY_RATE = ("rate", "ramp", "steps", "goal")
_TRACED = "the trace says when calls arrive"
_CLOSED = "in a closed loop a call arrives as another ends"
_OFFERING = [benchmark for benchmark in declarations().values() if benchmark.prompts]
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


class LoadOptions(Struct, frozen=True):
    """The options of a load test, beside those of sending. None: not given."""

    model: Annotated[
        tuple[str, ...],
        Positional(ModelName(), "PROVIDER/MODEL", "who is asked; several at once, each with all the calls"),
    ]
    out: Annotated[str | None, Option(Text("a folder"), "DIR", "the test's folder; it must not hold a test yet")] = None
    no_report: Annotated[bool, Option(help="write no report.html and tables/")] = False
    plan: Annotated[bool, Option(help="say what would be sent and what it may cost; send nothing, write nothing")] = (
        False
    )

    rate: Annotated[
        float | None,
        Heading("when calls are due: one of these six (default: --rate 1)"),
        Option(RATE, "R", "R calls a second, whatever the server does (open loop)", one_of=_DUE),
    ] = None
    ramp: Annotated[
        tuple[float, float] | None,
        Option(RAMP, "FROM:TO", "a rate that rises or falls evenly over --duration", one_of=_DUE),
    ] = None
    steps: Annotated[
        list[float] | None, Option(RATES, "R,R,…", "one rate after the other, each for --step-time", one_of=_DUE)
    ] = None
    replay: Annotated[
        str | None,
        Option(
            Text("a file of time stamps"),
            "FILE",
            "the time stamps of a trace: CSV, JSON lines or a number a line; also the calls.jsonl of a test",
            one_of=_DUE,
        ),
    ] = None
    in_flight: Annotated[
        int | None,
        Option(
            CONCURRENCY,
            "N",
            "N calls in flight at any time, each begun as another ends (closed loop: it slows down with the server)",
            one_of=_DUE,
        ),
    ] = None
    goal: Annotated[
        str | None,
        Option(
            Text('a goal, as "p99 first token <= 2 s and errors <= 0.1%"'),
            help='search the highest rate at which this is kept, as in "p99 first token <= 2 s and errors <= 0.1%"; '
            "the times are latency; first token, or ttft; token (for each one after the first), or tpot; gap (between "
            "two pieces of text), or itl",
            one_of=_DUE,
        ),
    ] = None

    arrivals: Annotated[
        Process | None,
        Heading("how they arrive"),
        Option(
            WordChoice(("poisson", "constant", "gamma")),
            "PROCESS",
            "poisson (default): as of many users who know nothing of each other; constant: evenly; gamma: in bursts",
            beside=_BY_RATE,
            barred={"replay": _TRACED, "in_flight": _CLOSED},
        ),
    ] = None
    burstiness: Annotated[
        float | None,
        Option(
            Number("a variance in times that of a Poisson process", 0.01, 1_000),
            "B",
            "of gamma: how many times the variance of a Poisson process; above 1 come bursts",
            beside=_BY_RATE,
            barred={"replay": _TRACED, "in_flight": _CLOSED},
        ),
    ] = None
    step_time: Annotated[
        float, Option(Duration("a time"), "TIME", "of each of --steps (default: 30s)", beside=("steps",))
    ] = 30.0
    speed: Annotated[
        float,
        Option(Number("a factor", 1e-6, 1e9), "X", "replay X times as fast (default: 1)", beside=("replay",)),
    ] = 1.0

    from_: Annotated[
        float,
        Heading("for --goal"),
        Option(RATE, "R", "the rate to begin at, in calls a second (default: 1)", beside=("goal",)),
    ] = 1.0
    to: Annotated[float, Option(RATE, "R", "the highest rate to try (default: 1,000)", beside=("goal",))] = 1_000.0
    precision: Annotated[
        float,
        Option(PERCENTAGE, "SHARE", "how far apart kept and missed may be in the end (default: 5%)", beside=("goal",)),
    ] = 0.05

    prompt_tokens: Annotated[
        str,
        Heading("what is asked: one of the first three"),
        Option(
            LENGTHS,
            "LENGTH",
            "tokens of the made-up prompts: N, LOW-HIGH, lognormal:MEDIAN,P99, or trace: those of the --replay file "
            "(default: 200)",
            one_of=_ASKED,
        ),
    ] = "200"
    prompts: Annotated[
        str | None,
        Option(
            Text("a file of prompts"),
            "FILE",
            "prompts of yours, one a line: text, a JSON string, or an object with `prompt` or `messages`",
            one_of=_ASKED,
        ),
    ] = None
    dataset: Annotated[
        str | None,
        Option(
            Text(f"{', '.join(benchmark.name for benchmark in _OFFERING)} or a data set"),
            "NAME|PATH",
            f"{listed([benchmark.prompts for benchmark in _OFFERING], 'or')}: "
            f"{listed([benchmark.name for benchmark in _OFFERING], 'and')} are the samples that come with millstream",
            one_of=_ASKED,
        ),
    ] = None
    exact_prompts: Annotated[
        bool,
        Option(
            help="send prompts of a file or data set to the letter; else each begins with other random letters, so "
            "that no cache of prefixes answers"
        ),
    ] = False
    max_tokens: Annotated[
        int | Literal["trace"],
        Option(MOST_TOKENS, "N", "the most tokens of an answer, or trace: those of the --replay file (default: 64)"),
    ] = 64
    temperature: Annotated[float | None, Option(TEMPERATURE, "T", "as in a run (default: not sent)")] = None
    whole: Annotated[bool, Option(help="ask for whole answers; else they are streamed")] = False

    duration: Annotated[
        float | None,
        Heading("how long, and which part counts"),
        Option(
            Duration("a time"),
            "TIME",
            "begin calls for so long: seconds, or 90s, 10m (default: 60s, where --calls, --steps, --replay and --goal "
            "say nothing else)",
            beside=("rate", "ramp", "replay", "in_flight"),
            barred={
                "steps": "each step's length is --step-time",
                "goal": "a search takes as long as its calls need: narrow it by --from and --to",
            },
        ),
    ] = None
    calls: Annotated[
        int | None,
        Option(
            WholeNumber("calls"),
            "N",
            "begin N calls, to all models together",
            beside=("rate", "ramp", "steps", "replay", "in_flight"),
            barred={"goal": "a search needs as many calls as decide it: bound it by --max-cost or --to"},
        ),
    ] = None
    most_in_flight: Annotated[
        int,
        Option(
            CONCURRENCY,
            "N",
            "of each model at once; a call that is due beyond them waits, and that counts (default: 2,000)",
            beside=("rate", "ramp", "steps", "replay", "goal"),
            barred={"in_flight": "a closed loop has as many in flight as it says"},
        ),
    ] = 2_000
    drain: Annotated[float, Option(PAUSE, "TIME", "wait so long for what is in flight at the end (default: 60s)")] = (
        60.0
    )
    warm_up: Annotated[float, Option(PAUSE, "TIME", "leave out calls that are due so early (default: 0)")] = 0.0
    cool_down: Annotated[float, Option(PAUSE, "TIME", "leave out calls that are due so near the end (default: 0)")] = (
        0.0
    )
    promise: Annotated[
        str | None,
        Option(
            Text('times, as "first token <= 1 s, latency <= 10 s, token <= 50 ms"'),
            "TIMES",
            'count the answers that keep all of these as goodput, as in "first token <= 1 s, latency <= 10 s"; also '
            "token; ttft and tpot are understood too",
        ),
    ] = None
    seed: Annotated[
        int,
        Option(
            WholeNumber("a seed", 0),
            "N",
            "the same seed draws the same arrivals, lengths and order of prompts (default: 0)",
        ),
    ] = 0

    def __post_init__(self) -> None:
        if self.burstiness is not None and self.arrivals not in (None, "gamma"):
            raise ValueError(
                f"--burstiness: expected --arrivals gamma beside it, got {self.arrivals}, which has its own"
            )
        if self.arrivals == "gamma" and self.burstiness is None:
            raise ValueError(
                "--arrivals gamma: expected --burstiness B beside it, got none: 1 is Poisson, above it are bursts"
            )
        if self.exact_prompts and self.prompts is None and self.dataset is None:
            raise ValueError("--exact-prompts: expected --prompts or --dataset beside it, got neither")
        for flag, value in (("--prompt-tokens", self.prompt_tokens), ("--max-tokens", self.max_tokens)):
            if value == TRACE and self.replay is None:
                raise ValueError(f"{flag} trace: expected --replay FILE beside it, got none: give a number")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, LoadOptions)
    add_sending(parser, helps=_MEANT)
    add_cluster(parser)
    add_output(parser)
