"""What a benchmark gives for a run: its items, the models that it calls, and the most tokens of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from ....configuration.declared_options import read_kept
from ....configuration.errors import UsageError
from ....engine.call import Call
from ....engine.pairs import Pair
from .benchmark import ItemBenchmark
from .defect import BenchmarkDefect, benchmark_code
from .item_set import ItemSet


def highest_limits(limits: Mapping[Pair, int | None], others: Iterable[Call]) -> dict[str, int | None]:
    """Returns each model's highest `max_tokens`; None where its calls set none. A model that is both under test and a
    judge has the higher one."""
    every = [(pair.model, limit) for pair, limit in limits.items()]
    every += [(call.model, call.max_tokens) for call in others]
    highest: dict[str, int | None] = {}
    for model, limit in every:
        before = highest.get(model, limit)
        highest[model] = None if limit is None or before is None else max(limit, before)
    return highest


def other_calls(benchmark: ItemBenchmark[Any], options: Any) -> list[Call]:
    """Returns a call to each model that is called beside those under test, with its `max_tokens`."""
    others = benchmark.others(options)
    if isinstance(others, Mapping):
        return [Call(name, "?", max_tokens=limit) for name, limit in others.items()]
    return [other if isinstance(other, Call) else Call(other, "?") for other in others]


def items_of(benchmark: ItemBenchmark[Any], options: Any) -> ItemSet:
    """Returns a run's items. Raises UsageError for data that can't be read, and BenchmarkDefect if the benchmark's code
    raises anything else."""
    try:
        with benchmark_code(benchmark.title):
            items = benchmark.items(options)
            if isinstance(items, ItemSet):
                return items
            return ItemSet(lambda: benchmark.items(options), title=benchmark.title)
    except BenchmarkDefect as defect:
        if not isinstance(error := defect.__cause__, OSError):
            raise
        raise UsageError(
            f"{error.filename or benchmark.title}: expected readable data, got: {error.strerror}"
        ) from error


def options_in(benchmark: ItemBenchmark[Any], manifest: Mapping[str, Any]) -> Any:
    """Returns a run's options from its manifest. Raises KeyError or TypeError if it has none."""
    kept, names = manifest["options"][benchmark.name], benchmark.Options.__struct_fields__
    return read_kept(benchmark.Options, {name: kept[name] for name in names if name in kept})


def items_of_run(benchmark: ItemBenchmark[Any], manifest: Mapping[str, Any]) -> ItemSet:
    """Returns the items of a run that has begun. Raises UsageError if their data can't be read, or have changed."""
    items, began_with = items_of(benchmark, options_in(benchmark, manifest)), str(manifest["specification"]["data"])
    if items.digest != began_with:
        raise UsageError(
            f"{manifest['dataset']['path']} is not the data set of this run: its digest is {items.digest[:12]}…, it "
            f"was {began_with[:12]}…; bring that one back"
        )
    return items


def with_limit(options: Any, limit: int | None) -> Any:
    return options if getattr(options, "max_tokens", limit) == limit else structs.replace(options, max_tokens=limit)
