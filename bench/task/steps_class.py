"""`ms.Benchmark`: a benchmark of several steps as its author writes it, and the same in the form of a task.

Owns the fields of the class and their checks. Sends nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import msgspec

from ...engine.call import Call
from ...engine.near_names import nearest
from ...metrics.task.trials import Combine
from ...wiring import Settings
from ..evaluation.data.data_rows import Data
from ..evaluation.door.defect import BenchmarkDefect
from ..tools.carrying_out import TIME_LIMIT_S
from ..tools.toolset import ToolSet
from .figures import AnyFigure
from .rows import TaskError, TaskRow, shown
from .scorers import Function, Score
from .source import source_of, source_of_class
from .steps_ask import StepAsk
from .task import AnyScorer, Task

STEPS_MOST = 100_000
_SCORE = "score"
# Above it, an attribute is taken for a misspelt field: `step_max` for `steps_max`, but not `names` for `name`.
_MISSPELT = 0.9


class Benchmark:
    """A benchmark of several steps: a conversation, or an agent with tools. It is a class in a file: its `run` asks the
    model as often as it likes, and its `score` scores what `run` returned. `ms.Task` is the short form for one
    question.
    """

    data: Data
    """The rows: a file, a folder or an iterable of mappings, as of a Task; a relative path begins at this class's
    file."""
    name: str | None = None
    """Its name in files and reports; None: that of the class, or of the variable that holds the instance."""
    steps_max: int = 20
    """How many calls an item may make; one more is the failure `steps_exceeded`."""
    models: Mapping[str, str] = MappingProxyType({})
    """Other models that `run` asks, by the names that `ask(…, model=…)` takes: `{"user": "openai/gpt-6.2-sol"}`."""
    tools: Sequence[Any] = ()
    """The tools, for `ms.tool_loop`: functions, and servers of `ms.mcp`."""
    tool_time_limit_s: float = TIME_LIMIT_S
    """How many seconds a call of a tool may take; a longer one is abandoned, and its result says so."""
    trials: int = 1
    """How often each row is run."""
    combine: Combine = "mean"
    """How the trials of a row combine: `mean`, `majority` or `any`."""
    figures: Mapping[str, AnyFigure] | None = None
    """Figures over all answers of a model, by name, as of a Task: `{"pass@2": ms.pass_at(2)}`."""
    group: str | None = None
    """The column that groups the rows; None: the column `group`, where there is one."""
    subset: str | None = None
    """The subset of a Hugging Face folder."""
    split: str | None = None
    """The split of a Hugging Face folder, as `test`."""
    temperature: float | str | Sequence[float | str] | None = None
    """The temperature of the model under test, or several; `none`: not sent. `--temperature` replaces it."""
    reasoning_effort: str | None = None
    """The provider's word for how long the model under test thinks. `--reasoning-effort` replaces it."""
    max_tokens: int | None = None
    """How many tokens an answer may have, of other models too, unless the call sets its own `max_tokens`."""

    async def run(self, item: dict[str, Any], ask: StepAsk) -> Any:
        """Carries out an item and returns what `score` and the record get: a text, number, list or mapping. If a run
        goes on after a kill, it begins anew: calls that were answered before come from the cache.

        item: the columns of the row.
        ask: sends a call: `reply = await ask([ms.user("…")])`.
        """
        raise NotImplementedError

    def score(self, item: dict[str, Any], result: Any) -> Any:
        """Returns the score of what `run` returned: a number, True or False, None (there is none), or a mapping of
        names to these, of which the first is the main score. `score --task` calls it again, without a call to a
        model."""
        raise NotImplementedError


_FIELDS = tuple(name for name in Benchmark.__annotations__)
# These stand in a StepsTask under the same name.
_SAME = tuple(name for name in _FIELDS if name not in ("tools", "tool_time_limit_s"))


class Method(Function, frozen=True):
    """The method `score` of a benchmark as a scorer: it reads what `run` returned."""

    # The first name is the main score, whatever it is.
    main: ClassVar[str] = ""

    def score_result(self, result: Any, row: TaskRow) -> Score:
        """Returns the score of a result."""
        return self.scored(row.copied(), result)

    def score(self, reply: Any, row: TaskRow) -> Score:
        raise TaskError(f"{row.where}: it has no result of a benchmark's run(), which its score() could read")


class StepsTask(Task, frozen=True, kw_only=True):
    """A benchmark of several steps in the form of a task.

    author: the benchmark as its author wrote it.
    toolset: its tools.
    """

    author: Benchmark
    toolset: ToolSet
    prompt: str = ""

    def prompts(self) -> Any:
        """Returns an empty one: its own code makes them."""
        return {"": SimpleNamespace(of=lambda row: ("", "", ()))}

    def weigher(self) -> None:
        """Returns None: its own code asks, and weighs nothing."""

    def scorers(self) -> dict[str, AnyScorer]:
        return {_SCORE: Method(self.score)} if callable(self.score) else super().scorers()

    def specified(self) -> dict[str, Any]:
        author, kind, base = self.author, type(self.author), super().specified()
        program = {"class": kind.__qualname__, "sha256": source_of_class(kind, Benchmark, without={_SCORE, *_SAME})}
        own = {name: value for name, value in vars(author).items() if name not in _FIELDS}
        more = {"steps_max": author.steps_max, **({"models": dict(author.models)} if author.models else {}), **own}
        # A value that JSON can't hold counts by its type's name.
        written = msgspec.json.encode(more, enc_hook=lambda value: type(value).__qualname__)
        return {"prompt": program, "parameters": {**base["parameters"], **msgspec.json.decode(written)}}

    def other_calls(self) -> Iterator[Call]:
        """Yields a call to each model that `run` asks beside the one under test."""
        for model in dict.fromkeys(self.author.models.values()):
            yield Call(model, "?", max_tokens=self.max_tokens)


def is_benchmark(value: object) -> bool:
    """Returns whether a value is a benchmark of several steps, or a class of such."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, Benchmark) and kind is not Benchmark


def is_base(value: object) -> bool:
    """Returns whether a value is a class that lacks its data or its `run`, as one that others extend."""
    is_class = isinstance(value, type) and issubclass(value, Benchmark)
    return is_class and (value.run is Benchmark.run or not hasattr(value, "data"))  # type: ignore[attr-defined]


def steps_task(declared: Benchmark | type[Benchmark], name: str | None = None) -> StepsTask:
    """Returns a benchmark as a task; a class is instantiated without arguments. `name`: its name where it has none of
    its own. Raises TaskError if it can't be run as declared."""
    kind = declared if isinstance(declared, type) else type(declared)
    where = kind.__qualname__
    if isinstance(declared, type):
        try:
            declared = declared()
        except Exception as error:
            raise TaskError(f"{where}(): {type(error).__name__}: {error}: make an instance in the file") from error
    _check(declared, where)
    fields = {each: getattr(declared, each) for each in _SAME if each in Task.__struct_fields__}
    fields["name"] = declared.name or name or kind.__name__
    scoring: Any = declared.score
    try:
        tools = ToolSet(
            declared.tools,
            time_limit_s=declared.tool_time_limit_s,
            variables=Settings().variables,
            source_of=lambda function: source_of(function)["sha256"],
        )
        return StepsTask(author=declared, toolset=tools, score=scoring, **fields)
    except (TaskError, BenchmarkDefect) as error:
        raise TaskError(f"{where}: {error}") from error


def folder_of(declared: Benchmark | type[Benchmark]) -> Path:
    """Returns the folder of the file whose class says what the data are; for a notebook the working directory."""
    kind = declared if isinstance(declared, type) else type(declared)
    owner = next((each for each in kind.__mro__ if "data" in vars(each)), kind)
    try:
        return Path(inspect.getfile(owner)).absolute().parent
    except (TypeError, OSError):
        return Path.cwd()


def _check(declared: Benchmark, where: str) -> None:
    if not hasattr(declared, "data"):
        raise TaskError(f'{where}: data: expected it, as data = "rows.jsonl", got none')
    run, score = declared.run, declared.score
    if not inspect.iscoroutinefunction(run) or not _takes(run, Benchmark.run, "item", "ask"):
        raise TaskError(f"{where}: expected a method `async def run(self, item, ask)`")
    if inspect.ismethod(score) and not _takes(score, Benchmark.score, "item", "result"):
        raise TaskError(f"{where}: expected a method `def score(self, item, result)`, or a scorer as score = …")
    if inspect.ismethod(score) and inspect.iscoroutinefunction(score):
        raise TaskError(f"{where}: score: expected `def`, got `async def`: what it would ask, `run` can ask")
    names = {name for kind in type(declared).__mro__ for name in vars(kind)}
    for name in sorted(names - {*vars(Benchmark), *_FIELDS}):
        is_transposed = sorted(name) in map(sorted, _FIELDS)
        if near := nearest(name, _FIELDS, cutoff=0.5 if is_transposed else _MISSPELT):
            raise TaskError(f"{where}: unknown attribute {name}{near}: give one of your own another name")
    most = declared.steps_max
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= STEPS_MOST:
        raise TaskError(f"{where}: steps_max: expected a whole number from 1 to {STEPS_MOST:,}, got {shown(most)}")
    named = declared.models.items() if isinstance(declared.models, Mapping) else [("", declared.models)]
    if not all("/" not in str(name) and "/" in str(model) for name, model in named):
        models = 'names with models, as {"user": "provider/model"}'
        raise TaskError(f"{where}: models: expected {models}, got {shown(declared.models)}")


def _takes(method: Any, base: Any, *arguments: str) -> bool:
    """Returns whether a method is the author's own, and takes these arguments."""
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    return getattr(method, "__func__", None) is not base
