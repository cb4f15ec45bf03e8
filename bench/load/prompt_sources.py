"""The prompts of a load test: texts of a given length, the user's own prompts, or those of a data set.

Chooses between these and gives each prompt a different beginning. Files are read by `prompt_file`; knows no arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct

from ...configuration.benchmark_options import listed
from ...configuration.errors import UsageError
from ...engine.call import Call
from ...engine.runs.data_file import DatasetError
from ..evaluation.door.declarations import of_word
from ..evaluation.door.registry import benchmark_named, benchmarks
from ..made_prompts.lengths import parse_lengths
from ..made_prompts.prompts import CallParameters, Prompt, by_length, calls, from_texts, in_any_order, of_lengths
from .prompt_file import read_prompts
from .spec import CallSource

Prompts = Callable[[Random, Random], Iterator[Prompt]]
"""Makes prompts from two random sources: one for lengths and order, one for the first letters."""


class PromptSource(Struct, frozen=True):
    """A source of prompts. `told` describes it to the user (empty: nothing worth mentioning)."""

    prompts: Prompts
    told: str = ""


def of_tokens(text: str) -> PromptSource:
    lengths = parse_lengths(text)
    return PromptSource(lambda random, heads: by_length(lengths, random, heads))


def of_trace(tokens: tuple[int, ...]) -> PromptSource:
    return PromptSource(
        lambda random, heads: of_lengths(tokens, random, heads), "prompts are as long as the trace tells"
    )


def of_file(path: Path, *, is_exact: bool) -> PromptSource:
    prompts = read_prompts(path)
    return _shuffled(prompts, f"{len(prompts):,} prompts from {path}", is_exact=is_exact)


def of_dataset(name: str, *, is_exact: bool) -> PromptSource:
    """Returns the prompts of a benchmark's sample, named by the benchmark or a word for it, or of a data set at a path.
    `is_exact`: prompts are sent as they are, without a random first word. Raises UsageError if there is none."""
    if (named := of_word(name)) is not None:
        owner, options = named
        sample = benchmark_named(owner.name).load_prompts(Path(name) if options else None)
        return _shuffled(sample.prompts, sample.text, is_exact=is_exact)
    offering = [benchmark for benchmark in benchmarks() if benchmark.prompts]
    path = Path(name).expanduser()
    if not path.exists():
        names = ", ".join(benchmark.name for benchmark in offering)
        raise UsageError(f"--dataset: expected {names}, or a file or folder that exists, got {name}")
    errors = []
    for benchmark in offering:
        try:
            sample = benchmark.load_prompts(path)
        except (DatasetError, OSError) as error:
            errors.append(f"as {benchmark.title}'s: {error}")
        else:
            return _shuffled(sample.prompts, sample.text, is_exact=is_exact)
    titles = listed([benchmark.title for benchmark in offering], "or")
    none = "neither" if len(offering) == 2 else "none"
    raise UsageError(f"--dataset: {path}: expected a data set of {titles}, got {none}; {'; '.join(errors)}")


def source_of(
    chosen: PromptSource, wanted: CallParameters, seed: int, answers: tuple[int, ...] | None = None
) -> CallSource:
    """Returns the function that makes the calls of a model and a step. `answers` gives each answer's own token limit
    instead of one for all (None)."""

    def source(model: str, step: int) -> Iterator[Call]:
        # The first letters do not depend on the seed: a provider may still cache the prompts of an earlier test.
        random, heads = Random(f"{seed} {step} {model} prompts"), Random()
        return calls(model, chosen.prompts(random, heads), wanted, heads, answers)

    return source


def _shuffled(prompts: Sequence[Prompt], text: str, *, is_exact: bool) -> PromptSource:
    if is_exact:
        return PromptSource(lambda random, heads: in_any_order(prompts, random), f"{text}, to the letter")
    return PromptSource(lambda random, heads: from_texts(prompts, random, heads), f"{text}, each behind other letters")
