"""The time of conversations with search and pages: `python -m millstream.speed.conversations [--full]`.

The program runs in one process, the simulated outside in another, over real sockets. Prints pages a second, the share
of the declared lanes' capacity, the loop's worst stalls and the memory, and the same for a second run from the cache.
The times before the first page and after the last are separate, as no lane causes them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ..fixtures.full_conversations import BENCHMARK, CONVERSATIONS, ensure_conversations
from .server import verdict
from .simulated import NoOutside, SimulatedPorts, SimulatedWorld, Traffic, simulated
from .watched import LATE_S, ProgramUsage

SHARE_GOAL = 0.85
STALL_GOAL_MS = 50.0
DISTINCT_GOAL = 5_000
_STALLS_TOLD = 4
_FIGURES = ("score", "srr", "confidence", "changes")

_LANES = """
[lanes."web/*"]
rpm = 60000
concurrency = 64

[lanes."search/searxng"]
rpm = 60000
concurrency = 64
"""


class ConversationsPlan(Struct, frozen=True):
    """What to measure. `pages_rpm` is declared for all pages together; None: no limit. Other declared quotas are too
    high to matter."""

    world: SimulatedWorld
    conversations: int
    turns: int = 15
    pages_rpm: float | None = None

    @property
    def lanes(self) -> str:
        return _LANES if self.pages_rpm is None else f"[lanes.web]\nrpm = {self.pages_rpm:g}\n{_LANES}"


class ProgramReport(Struct, frozen=True):
    """The program's own report of its run."""

    answered: int
    failed: int
    pending: int
    scores: dict[str, Any]


class _Summary(Struct, frozen=True):
    runs: list[ProgramReport]


class Program(Struct, frozen=True):
    """One run of the program: its report, and the use of its loop."""

    began_at: float
    ended_at: float
    run: ProgramReport
    loop: ProgramUsage

    @property
    def seconds(self) -> float:
        return self.ended_at - self.began_at


class ConversationsMeasurement(Struct, frozen=True):
    """The measurements of a plan: a first run with the traffic seen by the other side, and a second one from the
    cache."""

    plan: ConversationsPlan
    first: Program
    traffic: Traffic
    again: Program
    again_sent: int

    @property
    def ideal_s(self) -> float | None:
        """Returns the time that the declared lane needs for the requests alone."""
        return None if self.plan.pages_rpm is None else self.traffic.requests * 60 / self.plan.pages_rpm

    @property
    def share(self) -> float | None:
        return None if self.ideal_s is None else self.ideal_s / self.first.seconds


# The searches of 900 turns find a little more than 5,000 of so many pages.
SIXTY = ConversationsPlan(SimulatedWorld(12_000, 200, model_s=1.0, page_s=0.2), conversations=60, pages_rpm=1_800)
FULL = ConversationsPlan(SimulatedWorld(12_000, 200), conversations=CONVERSATIONS)


def measure(plan: ConversationsPlan, folder: Path) -> ConversationsMeasurement:
    """Measures a plan. Raises NoOutside, or SystemExit with the program's error."""
    dataset = ensure_conversations(folder / "data", plan.conversations, plan.turns)
    (folder / "lanes.toml").write_text(plan.lanes)
    with simulated(plan.world, dataset, folder) as outside:
        first = _program(plan, outside, folder, "first")
        traffic = outside.traffic()
        again = _program(plan, outside, folder, "again", "--mode", "replay")
        return ConversationsMeasurement(plan, first, traffic, again, outside.traffic().requests - traffic.requests)


def _program(plan: ConversationsPlan, outside: SimulatedPorts, folder: Path, name: str, *more: str) -> Program:
    report = folder / f"{name}.loop.json"
    command = [
        *(sys.executable, "-P", "-m", "millstream.speed.watched", str(report), "millstream"),
        *("run", BENCHMARK, "--model", "sim/open", "--judge", "sim/judge", "--search", "searxng"),
        *("--temperature", "0", "--base-url", outside.base_url, "--allow-host", outside.allow_host),
        *("--dataset", str(folder / "data"), "--config", str(folder / "lanes.toml"), "--turns", str(plan.turns)),
        *("--cache", str(folder / "cache"), "--out", str(folder / name), "--json", "--no-progress", "--no-report"),
        *more,
    ]
    environment = {**os.environ, "SEARXNG_BASE_URL": outside.search_url}
    began_at = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    ended_at = time.monotonic()
    if done.returncode:
        raise SystemExit(f"the run ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    summary = msgspec.json.decode(done.stdout, type=_Summary)
    return Program(began_at, ended_at, summary.runs[0], msgspec.json.decode(report.read_bytes(), type=ProgramUsage))


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.conversations", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all 1,180 conversations, nothing that holds them up")
    parser.add_argument("--conversations", type=int, metavar="N", help="another number of them: a look, not a result")
    options = parser.parse_args()
    plan = FULL if options.full else SIXTY
    if options.conversations is not None:
        plan = structs.replace(plan, conversations=options.conversations)
    print(f"{len(os.sched_getaffinity(0))} cores; Python {sys.version.split()[0]}")
    print(told_of_plan(plan), flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
            result = measure(plan, Path(name))
    except NoOutside as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    print(text_of(result), flush=True)
    reached = [verdict(text, is_reached=is_reached) for text, is_reached in goals(result)]
    return 0 if all(reached) else 3


def told_of_plan(plan: ConversationsPlan) -> str:
    world, rpm = plan.world, plan.pages_rpm
    pace = "no pace declared" if rpm is None else f"all pages together {rpm / 60:g} a second"
    return (
        f"{plan.conversations:,} conversations of {plan.turns} turns over a web of {world.pages:,} pages on "
        f"{world.hosts} hosts; a model takes {world.model_s:g} s, a page {world.page_s:g} s; {pace}"
    )


def text_of(result: ConversationsMeasurement) -> str:
    """Returns the figures as text lines."""
    traffic, first, again = result.traffic, result.first, result.again
    turns, pages_s = first.run.answered, traffic.last_at - traffic.first_at
    lines = [
        f"whole run {first.seconds:,.1f} s: {traffic.first_at - first.began_at:.1f} s before the first page, "
        f"{pages_s:,.1f} s of pages, {first.ended_at - traffic.last_at:.1f} s after the last",
        f"records {turns:,}, failed {first.run.failed:,}, pending {first.run.pending:,}; "
        f"{turns / first.seconds:.1f} turns/s",
        f"pages {traffic.distinct:,} and robots.txt {traffic.robots:,}, {traffic.requests / pages_s:.1f}/s while they "
        f"last, {traffic.requests / first.seconds:.1f}/s over all",
    ]
    if result.ideal_s is not None and result.share is not None:
        lines.append(
            f"the declared lane takes {result.ideal_s:,.1f} s for {traffic.requests:,} requests: share "
            f"{result.share:.3f} of the whole run, {result.ideal_s / pages_s:.3f} while pages last"
        )
    lines += [
        f"extraction in workers {1000 * first.loop.children_cpu_s / max(1, traffic.distinct):.1f} ms of CPU a page",
        *_told_of_process(first),
        f"again from the cache {again.seconds:,.1f} s, {again.run.answered / again.seconds:.1f} turns/s, pages asked "
        f"for {result.again_sent:,}",
        *_told_of_process(again),
    ]
    for model, pairs in first.run.scores[BENCHMARK]["models"].items():
        for temperature, figures in pairs.items():
            means = ", ".join(f"{name} {figures[name]['mean']:.3f}" for name in _FIGURES)
            lines.append(f"scores of {model} at {temperature}: {means}")
    return "\n".join(lines)


def _told_of_process(program: Program) -> list[str]:
    loop, turns = program.loop, max(1, program.run.answered)
    lines = [
        f"  CPU {loop.cpu_s:.1f} s, {1000 * loop.cpu_s / turns:.1f} ms a turn; in workers {loop.children_cpu_s:.1f} s",
        f"  memory: most {loop.peak_kib / 1024:.0f} MiB, at the end {loop.anonymous_kib / 1024:.0f} MiB without files; "
        f"largest worker {loop.largest_child_kib / 1024:.0f} MiB",
        f"  loop: worst stall {loop.worst_own_ms:.1f} ms of its own ({loop.worst_ms:.1f} ms with waiting for a core); "
        f"{loop.late:,} of {loop.ticks:,} ticks were more than {1000 * LATE_S:.0f} ms late",
    ]
    for stall in loop.stalls[:_STALLS_TOLD]:
        lines.append(
            f"    at {stall.at_s:.1f} s: {stall.late_ms:.1f} ms, of which it ran {stall.ran_ms:.1f} ms and waited "
            f"{stall.waited_for_core_ms:.1f} ms for a core"
        )
        lines += [f"      {place}" for place in stall.seen[:2]]
    return lines


def goals(result: ConversationsMeasurement) -> list[tuple[str, bool]]:
    """Returns each goal as a text, and whether it is reached."""
    turns = result.plan.conversations * result.plan.turns
    answered, stall_ms = result.first.run.answered, result.first.loop.worst_own_ms
    is_same = result.again_sent == 0 and result.again.run.scores == result.first.run.scores
    rows = [
        (f"{answered:,} records (goal {turns:,})", answered == turns),
        (f"worst stall {stall_ms:.1f} ms (goal <= {STALL_GOAL_MS:g})", stall_ms <= STALL_GOAL_MS),
        ("the same scores again, with no page asked for", is_same),
    ]
    if result.share is not None:
        rows.append((f"share of the ideal {result.share:.3f} (goal >= {SHARE_GOAL})", result.share >= SHARE_GOAL))
    if result.plan == SIXTY:
        distinct = result.traffic.distinct
        rows.append((f"{distinct:,} distinct pages (goal >= {DISTINCT_GOAL:,})", distinct >= DISTINCT_GOAL))
    return rows


if __name__ == "__main__":
    sys.exit(main())
