"""What a load test says to its models: words of a wanted length, the user's own prompts, or those of a data set.

Owns which of these was asked for and that no two calls begin alike. How files look: prompt_file; knows no arrivals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from msgspec import Struct

from ...bench.chameleon import dataset as chameleon
from ...bench.load.lengths import Fixed, Lengths, Lognormal, Uniform
from ...bench.load.prompts import Prompt, Wanted, by_length, calls, from_texts, in_any_order, of_lengths
from ...bench.millstone import dataset as millstone
from ...bench.millstone.grid import Grid
from ...bench.millstone.labels import compared
from ...bench.millstone.sample import sample_ids
from ...engine.call import Call
from ...engine.data_file import DatasetError
from .. import chameleon_work, millstone_work
from ..refusal import UsageError
from .order import Source
from .prompt_file import read_prompts

# Of a grid: enough to be all kinds of its prompts, and few enough to be held in memory.
GRID_MOST = 5_000
_LENGTH_MOST = 200_000
_LENGTHS = re.compile(r"(?:(\d+)-(\d+)|lognormal:([\d.]+),([\d.]+)|(\d+))", re.ASCII)

Prompts = Callable[[Random, Random], Iterator[Prompt]]
"""Made from what draws their lengths and order, and what draws their first letters."""


class Chosen(Struct, frozen=True):
    """`told`: what they are, in words; empty where nothing is worth a word."""

    prompts: Prompts
    told: str = ""


def of_tokens(text: str) -> Chosen:
    lengths = _lengths_of(text)
    return Chosen(lambda random, heads: by_length(lengths, random, heads))


def of_trace(tokens: tuple[int, ...]) -> Chosen:
    return Chosen(lambda random, heads: of_lengths(tokens, random, heads), "prompts are as long as the trace tells")


def of_file(path: Path, *, is_exact: bool) -> Chosen:
    found = read_prompts(path)
    return _given(found, f"{len(found):,} prompts from {path}", is_exact=is_exact)


def of_dataset(name: str, *, is_exact: bool) -> Chosen:
    """A sample by its name, else a path to a data set of either benchmark."""
    if name == "millstone":
        return _of_grid(millstone_work.SAMPLE, is_exact=is_exact)
    if name == "chameleon":
        return _of_questions(chameleon_work.SAMPLE, is_exact=is_exact)
    path = Path(name).expanduser()
    if not path.exists():
        raise UsageError(f"--dataset: expected millstone, chameleon, or a file or folder that exists, got {name}")
    said = []
    for benchmark, read in (("MillStone", _of_grid), ("Chameleon", _of_questions)):
        try:
            return read(path, is_exact=is_exact)
        except (DatasetError, OSError) as error:
            said.append(f"as {benchmark}'s: {error}")
    raise UsageError(
        f"--dataset: {path}: expected a data set of MillStone or Chameleon, got neither; {'; '.join(said)}"
    )


def source_of(chosen: Chosen, wanted: Wanted, seed: int, answers: tuple[int, ...] | None = None) -> Source:
    """`answers`: the most tokens of each answer, in place of one number for all."""

    def source(model: str, step: int) -> Iterator[Call]:
        # The first letters are no seed's: what a test before this one sent, a provider may still know.
        random, heads = Random(f"{seed} {step} {model} prompts"), Random()
        return calls(model, chosen.prompts(random, heads), wanted, heads, answers)

    return source


def _lengths_of(text: str) -> Lengths:
    match = _LENGTHS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no length")
    low, high, median, p99, fixed = match.groups()
    if low is not None:
        return Uniform(int(low), int(high))
    if median is not None:
        return Lognormal(float(median), float(p99), max(_LENGTH_MOST, round(float(p99))))
    return Fixed(int(fixed))


def _of_grid(path: Path, *, is_exact: bool) -> Chosen:
    """The prompts that `run millstone` asks, or a sample of them that is spread over all that the grid varies."""
    grid = Grid(millstone.load(path))
    wanted = set(sample_ids(grid, GRID_MOST))
    found: list[Prompt] = [item.prompt for item in grid.items(lambda item_id: item_id not in wanted)]
    many = f"{len(found):,}" if len(found) == len(grid) else f"{len(found):,} of the {len(grid):,}"
    labels = compared(grid.dataset, range(1, grid.templates + 1))
    differ = f"; its {labels.used} (a load test reads no label)" if labels.mismatches else ""
    return _given(found, f"{many} prompts of MillStone's grid ({grid.dataset.name}){differ}", is_exact=is_exact)


def _of_questions(path: Path, *, is_exact: bool) -> Chosen:
    dataset = chameleon.load(path)
    found: list[Prompt] = [question for each in dataset.conversations for question in each.questions]
    return _given(found, f"{len(found):,} questions of Chameleon's conversations ({dataset.name})", is_exact=is_exact)


def _given(found: list[Prompt], told: str, *, is_exact: bool) -> Chosen:
    if is_exact:
        return Chosen(lambda random, heads: in_any_order(found, random), f"{told}, to the letter")
    return Chosen(lambda random, heads: from_texts(found, random, heads), f"{told}, each behind other letters")
