"""`evaluate`: runs a task from a script or a notebook, as `millstream run` does.

Owns the run's thread, so that it works beside a running event loop, and the handling of an interruption. Folder and
files are those of the command line, and either resumes the other's run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ...bench.evaluation.door.benchmark import Order
from ...bench.evaluation.door.prepared_run import PreparedRun
from ...bench.evaluation.door.watch import ItemProgress, OpenRun, Watch
from ...bench.evaluation.planning.item_plan import run_of
from ...bench.evaluation.planning.preparation import check_snapshot
from ...bench.evaluation.running.execution import RunResult, execute
from ...bench.evaluation.running.journals import RecordError
from ...bench.evaluation.running.stop_reasons import why
from ...bench.task.benchmark import BENCHMARK
from ...bench.task.files import Declared, TaskSource, as_task, check_not_loading
from ...bench.task.options import Options, Readings
from ...bench.task.result import Evaluation, model_result, pair_result
from ...bench.task.rows import TaskError, shown
from ...bench.task.score_document import NAME
from ...bench.task.steps_class import folder_of, is_benchmark
from ...bench.task.task import Task, several, temperatures_of
from ...configuration.benchmark_options import RunOptions
from ...configuration.configuration import read_configuration
from ...configuration.errors import UsageError
from ...configuration.options import SendingOptions
from ...engine.events import Event
from ...engine.exit_codes import RESUMABLE
from ...engine.fault import LocalFault, Stop, Stopped
from ...engine.remarks import remark, trouble
from ...wiring.engine import Engine
from ...wiring.lane_names import unused_lanes
from ..terminal.progress import watch_on_stderr
from ..terminal.remarks import shown_remarks


class EvaluateOptions(TypedDict, total=False):
    """The options of `evaluate`: those of `millstream run`, under the same names."""

    temperature: float | str | Sequence[float | str]
    """Ask at this temperature, or at each of these; "none": not sent; default: as the task says."""
    reasoning_effort: str | Sequence[str]
    """Ask at this reasoning effort, or at each of these; default: as the task says."""
    max_tokens: int
    """Tokens of an answer; default: as the task says."""
    trials: int
    """How often each row is asked; default: as the task says."""
    limit: int
    """How many rows are asked, from the first; default: all."""
    combine: Literal["mean", "majority", "any"]
    """How the trials of a row combine; default: as the task says."""
    unreadable: Literal["skip", "zero"]
    """Whether answers without a score are left out (default) or score 0."""
    base_url: str
    """Send every model's calls to this address."""
    rpm: float
    """Requests a minute, for each model."""
    tpm: float
    """Tokens a minute, for each model."""
    concurrency: int
    """Calls in flight, for each model."""
    max_cost: float
    """Stop before the run can cost more dollars; default: no limit."""
    tier: Literal["standard", "flex", "priority", "flex-then-standard"]
    """The provider's tier of service; default: the provider's."""
    cluster: str
    """The Ray cluster whose processes carry the calls, as HOST:PORT, or "local"; default: this process carries them."""
    workers: int
    """How many processes of the cluster carry calls; default: one a core."""
    cache: str
    """The folder where answers are kept; default: the user's cache folder."""
    mode: Literal["live", "record", "replay", "strict"]
    """What is taken from the cache, and whether anything is sent."""
    patience: float
    """How many seconds to wait for a provider that is down."""
    timeout: float
    """The deadline of a whole call, in seconds."""
    config: str
    """A file of lanes, providers and prices."""
    snapshot: str
    """Take answers from this file."""


_OF_RUN = ("temperature", "reasoning_effort", "max_tokens", "trials", "limit")
_READINGS = ("combine", "unreadable")


def evaluate(
    task: Declared,
    models: str | Iterable[str],
    out: str | Path,
    *,
    retry: bool = False,
    allow_partial: bool = False,
    progress: bool = False,
    report: bool = True,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Asks every model every row of a task, scores the answers, and returns the evaluation. Raises EvaluationStopped if
    not everything could be asked, or nothing was answered; prints the cause on stderr as soon as it appears.

    task: what is asked: a Task, or a Benchmark, also as a class.
    models: who is asked, as "openai/gpt-6-luna".
    out: the run's folder. The same call goes on where it stopped, and a finished one is read from there.
    retry: ask the questions again that failed for good.
    allow_partial: return an evaluation with pending questions; otherwise it is in the EvaluationStopped that is raised.
    progress: show the progress on stderr.
    report: write report.html and tables/ into the folder.
    options: those of `millstream run`, as `rpm=500` or `max_cost=5`: see EvaluateOptions.

    It may be called in a notebook, whose event loop runs: the run lives in a thread of its own. Ctrl-C waits for the
    calls in flight, which are kept, and raises KeyboardInterrupt; once more drops them.
    """
    check_not_loading()
    if not isinstance(task, Task) and not is_benchmark(task):
        raise TaskError(f"evaluate: expected an ms.Task or an ms.Benchmark, got {shown(task)}")
    unknown = options.keys() - EvaluateOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(EvaluateOptions.__annotations__)
        raise TypeError(f"evaluate() has no option {sorted(unknown)[0]!r}: it has {names}")
    prepared = _prepared(task, (models,) if isinstance(models, str) else tuple(models), Path(out).absolute(), options)
    with shown_remarks():
        for line in unused_lanes([prepared.settings]):
            remark(line)
        result = _executed(prepared, watch_on_stderr(is_shown=progress), retry=retry)
        if result.end.fault is not None:
            raise result.end.fault
        evaluation = _evaluation(result, _written(result) if report else None)
    if not allow_partial and (result.exit_code == RESUMABLE or not result.answered):
        raise EvaluationStopped(result.end.stops, evaluation)
    return evaluation


class EvaluationStopped(Stopped):
    """Raised by `evaluate` if it could not ask every question, or every one failed; the same call goes on. `evaluation`
    has what was answered."""

    def __init__(self, stops: Sequence[Stop], evaluation: Evaluation) -> None:
        super().__init__(stops)
        self.evaluation = evaluation

    def __str__(self) -> str:
        evaluation = self.evaluation
        if not evaluation.pending:
            reasons = dict.fromkeys(str(failure.error) for failure in evaluation.failed())
            return f"every question failed in {evaluation.folder}: {next(iter(reasons), '')}"
        return f"{evaluation.pending:,} questions are pending in {evaluation.folder}: {'; '.join(evaluation.stops)}"


def _prepared(declared: Declared, models: tuple[str, ...], out: Path, options: EvaluateOptions) -> PreparedRun:
    if not models:
        raise TaskError("evaluate: models: expected at least one, as 'openai/gpt-6-luna', got none")
    # A task has no name of its own; a class has.
    task = as_task(declared, NAME if isinstance(declared, Task) else "")
    base = Path.cwd() if isinstance(declared, Task) else folder_of(declared)
    run: dict[str, Any] = {name: value for name in _OF_RUN if (value := options.get(name)) is not None}
    if "temperature" in run:
        run["temperature"] = temperatures_of(run["temperature"])
    if "reasoning_effort" in run:
        run["reasoning_effort"] = several(run["reasoning_effort"])
    readings: dict[str, Any] = {name: value for name in _READINGS if (value := options.get(name)) is not None}
    others: dict[str, Any] = {name: value for name, value in options.items() if name not in (*_OF_RUN, *_READINGS)}
    sending = SendingOptions(ray=others.pop("cluster", None), **others)
    order = Order(
        out=out,
        run=RunOptions(NAME, Options(model=tuple(dict.fromkeys(models)), **run), Readings(**readings)),
        sending=sending,
        configuration=read_configuration(sending.config),
    )
    prepared = run_of(*BENCHMARK.ordered(order, TaskSource(task, base, {"by": "evaluate"})))
    check_snapshot(prepared.settings)
    return prepared


class _RunHandle:
    """The handle by which an interruption ends a run in another thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(
        self, engine: Engine, total: int, already: int, item: str, run: OpenRun | None = None
    ) -> Iterator[ItemProgress]:
        """Notes the run's engine and loop, shows its progress and logs why a lane stops, during the block; begins with
        the first call."""
        self._loop, self._engine, self._task = asyncio.get_running_loop(), engine, asyncio.current_task()

        reported: set[str] = set()

        def hear(event: Event) -> None:
            if event.kind == "stopped" and event.detail != "interrupted":
                details = {stop.detail for _, stop in engine.scheduler.routes.lasting[event.lane].lane.stopped_keys}
                for detail in sorted(details - reported):
                    trouble(detail)
                reported.update(details)

        unsubscribe = engine.events.subscribe(hear)
        try:
            with self._watch(engine, total, already, item, run) as progress:
                yield progress
        finally:
            unsubscribe()
            self._loop = None

    def drain(self) -> None:
        """Stops sending; calls in flight are finished."""
        if self._engine is not None:
            engine = self._engine
            self._tell(lambda: engine.halt("interrupted", "interrupted by Ctrl-C"))

    def cancel(self) -> None:
        if self._task is not None:
            self._tell(self._task.cancel)

    def _tell(self, callback: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has just been closed: the run is over
                loop.call_soon_threadsafe(callback)


def _executed(prepared: PreparedRun, watch: Watch, *, retry: bool) -> RunResult:
    """Runs the evaluation in a thread, since the caller's thread may have a running loop, and returns its result."""
    handle = _RunHandle(watch)
    ended: Future[RunResult] = Future()

    def live() -> None:
        try:
            ended.set_result(execute(prepared, retry=retry, watch=handle.watch))
        except BaseException as error:  # noqa: BLE001  (it ends this thread, and is raised in the caller's)
            ended.set_exception(error)

    thread = threading.Thread(target=live, name=f"millstream {prepared.out.name}", daemon=True)
    thread.start()
    try:
        return ended.result()
    except KeyboardInterrupt:
        handle.drain()
        try:
            thread.join()
        except KeyboardInterrupt:
            handle.cancel()
            thread.join()
        raise


def _written(result: RunResult) -> Path | None:
    """Writes the report and returns its page; None if there is no answer, or the report failed."""
    from ...bench.evaluation.page.reporting import read, write

    if not result.answered:
        return None
    try:
        return write([read(result.prepared.out)], result.prepared.out, has_figures=False).page
    except (UsageError, RecordError, LocalFault) as error:
        remark(f"no report in {result.prepared.out}: {error}")
        return None


def _evaluation(result: RunResult, page: Path | None) -> Evaluation:
    (name, scores), *_ = result.counted.scores.items()
    is_priced = any(result.counted.of(pair).cost is not None for pair in result.pairs())
    return Evaluation(
        name=name,
        folder=result.prepared.out,
        models={name: model_result(entry) for name, entry in scores["models"].items()},
        pairs=tuple(map(pair_result, scores["pairs"])),
        cost=result.cost if is_priced else None,
        failures=result.failed,
        pending=result.pending,
        unmeasured=tuple(result.counted.unmeasured),
        stops=(why(result.end),) if result.pending else (),
        report=page,
    )
