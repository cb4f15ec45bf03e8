"""Pages to texts beside bare trafilatura: `python -m millstream.speed.pages FOLDER [--rounds N]`.

FOLDER is the `tests` of a checkout of trafilatura: its own evaluation pages, and what of each belongs to the text. Bare
trafilatura has one core; our worker and the process that feeds it share one, then two workers and it share two. The
rates of a round stand side by side, since machines drift; F1 is over the passages, as trafilatura counts them. CPU time
is that of all processes, start included: other programs change it less than rates.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import uvloop
from msgspec import Struct, field

from ..engine.call import PageResponse
from ..providers.pages.extraction import Extraction
from .server import python_on, verdict

RATE_GOAL, TWO_CORES_GOAL, F1_GOAL = 0.9, 1.6, 0.919
# As many pages wait for a worker as conversations have on their way.
_AT_ONCE = 16


class Passages(Struct):
    """The file of a page, and passages that its text has and that it lacks."""

    file: str
    has: list[str] = field(name="with", default_factory=list)
    lacks: list[str] = field(name="without", default_factory=list)


class Measured(Struct):
    """How one way went: pages a second, F1, and milliseconds of CPU a page."""

    rate: float
    f1: float
    cpu_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.pages", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder with evaldata.json")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the median counts (default 5)")
    parser.add_argument("--way", choices=("bare", "ours"), help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (options.folder / "evaldata.json").is_file():
        parser.error(f"{options.folder} has no evaldata.json: give the folder `tests` of a checkout of trafilatura")
    if options.way is not None:
        way = bare if options.way == "bare" else lambda pages: uvloop.run(ours(pages, options.workers))
        sys.stdout.buffer.write(msgspec.json.encode(_measured(options.folder, way)))
        return 0
    cores = sorted(os.sched_getaffinity(0))
    ways = {
        "bare trafilatura": [*python_on(cores[0]), "-m", "millstream.speed.pages", "--way", "bare"],
        "one worker": [*python_on(cores[0]), "-m", "millstream.speed.pages", "--way", "ours"],
        "two workers": [sys.executable, "-P", "-m", "millstream.speed.pages", "--way", "ours", "--workers", "2"],
    }
    rounds: dict[str, list[Measured]] = {name: [] for name in ways}
    for turn in range(1, options.rounds + 1):
        for name, command in ways.items():
            done = subprocess.run([*command, str(options.folder.resolve())], capture_output=True, check=True)
            rounds[name].append(msgspec.json.decode(done.stdout, type=Measured))
        told = (f"{name} {of[-1].rate:.1f} ({of[-1].cpu_ms:.1f} ms)" for name, of in rounds.items())
        print(f"round {turn}, pages/s (CPU a page): {', '.join(told)}", flush=True)
    pairs = {name: list(zip(of, rounds["bare trafilatura"], strict=True)) for name, of in rounds.items()}
    shares = {name: statistics.median(one.rate / bare.rate for one, bare in of) for name, of in pairs.items()}
    cpu = {name: statistics.median(bare.cpu_ms / one.cpu_ms for one, bare in of) for name, of in pairs.items()}
    print(f"pages a CPU second, of bare trafilatura's: {cpu['one worker']:.2f}, two workers {cpu['two workers']:.2f}")
    f1, theirs = rounds["one worker"][-1].f1, rounds["bare trafilatura"][-1].f1
    one, two = shares["one worker"], shares["two workers"]
    reached = [
        verdict(f"one core: {one:.2f} of bare trafilatura's rate (goal >= {RATE_GOAL})", is_reached=one >= RATE_GOAL),
        verdict(f"two cores: {two:.2f} of it (goal >= {TWO_CORES_GOAL})", is_reached=two >= TWO_CORES_GOAL),
        verdict(f"F1 {f1:.3f}, bare {theirs:.3f} (goal >= {F1_GOAL})", is_reached=f1 >= F1_GOAL),
    ]
    return 0 if all(reached) else 3


def _measured(folder: Path, way: Callable[[list[bytes]], tuple[float, list[str]]]) -> Measured:
    listed = msgspec.json.decode((folder / "evaldata.json").read_bytes(), type=dict[str, Passages])
    every = list(listed.values())
    pages = [_page(folder, each.file) for each in every]
    seconds, texts = way(pages)
    uses = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_ms = 1e3 * sum(use.ru_utime + use.ru_stime for use in uses) / len(pages)
    return Measured(len(pages) / seconds, f1_of(zip(every, texts, strict=True)), cpu_ms)


def _page(folder: Path, name: str) -> bytes:
    return next(path for place in ("eval", "cache") if (path := folder / place / name).is_file()).read_bytes()


def f1_of(read: Iterable[tuple[Passages, str]]) -> float:
    """Returns twice the passages that were rightly found, of those and of all that are wrong or missing."""
    right = wrong = 0
    for passages, text in read:
        has = sum(passage in text for passage in passages.has)
        right += has
        wrong += len(passages.has) - has + sum(passage in text for passage in passages.lacks)
    return 2 * right / (2 * right + wrong)


def bare(pages: list[bytes]) -> tuple[float, list[str]]:
    """Returns the seconds for all pages and what trafilatura finds, with the options that we give it."""
    import trafilatura

    trafilatura.extract(pages[0], fast=True, include_comments=False)
    began = time.perf_counter()
    texts = [trafilatura.extract(page, fast=True, include_comments=False) or "" for page in pages]
    return time.perf_counter() - began, texts


async def ours(pages: list[bytes], workers: int) -> tuple[float, list[str]]:
    """Returns the seconds for all pages and what our workers find."""
    extraction, texts = Extraction(workers), [""] * len(pages)
    waiting = iter(enumerate(pages))

    async def read() -> None:
        for place, page in waiting:
            texts[place] = (await extraction.extract(PageResponse(200, "text/html", "", None, page))).text

    try:
        await extraction.start()
        began = time.perf_counter()
        await asyncio.gather(*(read() for _ in range(_AT_ONCE)))
        return time.perf_counter() - began, texts
    finally:
        await extraction.close()


if __name__ == "__main__":
    sys.exit(main())
