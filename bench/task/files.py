"""Files that declare tasks: a program in Python, or a table in TOML.

Owns how such a file is read and which of its tasks is meant. Only here a Python file is executed, and only if a person
names it.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from msgspec import Struct, structs

from ...configuration.errors import UsageError
from ...engine.missing import missing_module
from ..evaluation.door.benchmark import LoadPrompts
from .declared import nearest_argument, task_from
from .options import Options, options_of_word, split_name
from .parameters import Parameters, assignments, read_into
from .questions import questions_of
from .rows import TaskError, shown
from .steps_class import Benchmark, StepsTask, folder_of, is_base, is_benchmark, steps_task
from .task import Task

Declared: TypeAlias = Task | Benchmark | type[Benchmark]

_LOADING: ContextVar[Path | None] = ContextVar("task file being loaded", default=None)


class SeveralTasks(TaskError):
    """Raised for a file with several tasks, of which none is named; `names` has theirs."""

    def __init__(self, message: str, names: Iterable[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


class TaskSource(Struct, frozen=True):
    """A task, with the place where it was declared."""

    task: Task
    """The task, with its name."""
    base: Path
    """The folder that relative paths of its data are taken from."""
    origin: Mapping[str, Any]
    """The manifest's note on where the task was declared."""
    parameters: Mapping[str, Any] = {}
    """The values of the parameters that its file read."""


def load_task(path: Path, name: str | None = None, parameters: Parameters | None = None) -> TaskSource:
    """Loads and returns the only task of a file, or the one with this name. The file reads `parameters`. Raises
    TaskError if the file has no such task or can't be read."""
    path, parameters = path.absolute(), parameters or Parameters()
    if path.suffix not in (".py", ".toml"):
        raise TaskError(f"{path}: expected the file of a task, which ends with .py or .toml")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path}: expected the file of a task, got none that can be read: {error.strerror}") from error
    tasks: dict[str, Declared]
    if path.suffix == ".toml":
        tasks = {(task := _task_of_toml(source, path)).name or path.stem: task}
    else:
        with read_into(parameters):
            tasks = _tasks_of_python(source, path)
    if not tasks:
        raise TaskError(
            f"{path}: expected a task, as name = ms.Task(…), or a class of ms.Benchmark, got a file without any"
        )
    if name is None and len(tasks) > 1:
        example = f"{path.name}:{next(iter(tasks))}"
        raise SeveralTasks(f"{path} has several tasks: name one, as {example} ({', '.join(tasks)})", tasks)
    chosen = next(iter(tasks)) if name is None else name
    if chosen not in tasks:
        raise TaskError(f"{path}: no task {shown(name)}: it has {', '.join(tasks)}")
    try:
        with read_into(parameters):
            declared = tasks[chosen]
            task = as_task(declared, chosen)
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from error
    origin = {"file": str(path), "sha256": hashlib.sha256(source).hexdigest()}
    base = path.parent if isinstance(declared, Task) else folder_of(declared)
    return TaskSource(task, base, origin, parameters.values)


def as_task(declared: Declared, name: str) -> Task:
    """Returns what was declared as a task. `name`: its name where it has none of its own."""
    if not isinstance(declared, Task):
        return steps_task(declared, name)
    return declared if declared.name is not None else structs.replace(declared, name=name)


def source_of(run: Options, config: str | None) -> TaskSource:
    """Returns the task of the file that the options name, or else of the table `[task]` in the configuration's file.
    Raises UsageError if neither declares one, or if the file has no parameter of a name that the options set."""
    file = run.file or config
    if file is None or (run.file is None and options_of_word(file, has_run=True) is None):
        raise UsageError(
            "this run's task was declared by a program, with evaluate(): run that program again to go on; --file FILE "
            "names a file that declares one"
        )
    parameters = Parameters(assignments(run.set))
    source = load_task(*split_name(file), parameters)
    parameters.check_all_read(Path(split_name(file)[0]).name)
    return source


def check_not_loading() -> None:
    """Raises TaskError while a task file is being executed, since anything it starts would be started again."""
    path = _LOADING.get()
    if path is not None:
        raise TaskError(
            f'{path} calls evaluate() while it is loaded: put the call under if __name__ == "__main__":, so that '
            f"the file can be run by millstream too"
        )


def _tasks_of_python(source: bytes, path: Path) -> dict[str, Declared]:
    module = _executed(source, path)
    values = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    # Of a class that the file makes instances of, these are meant.
    made = {type(value) for value in values.values()}
    tasks: dict[str, Declared] = {}
    for variable, value in values.items():
        is_class = isinstance(value, type) and value.__module__ == module.__name__ and value not in made
        if not (isinstance(value, Task) or (is_benchmark(value) and (is_class or not isinstance(value, type)))):
            continue
        name = value.name or variable
        if name in tasks and tasks[name] is not value:
            raise TaskError(f"{path}: two tasks are called {shown(name)}: name each differently")
        tasks[name] = value
    # A class that lacks something is the base of others, or, if there is no other, a mistake that is named.
    return {name: value for name, value in tasks.items() if not is_base(value)} or tasks


def _executed(source: bytes, path: Path) -> ModuleType:
    name = f"_millstream_task_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # Functions, and tools that look up their source, find the module there.
    sys.modules[name] = module
    with _imports_from(path.parent):
        token = _LOADING.set(path)
        try:
            exec(compile(source, str(path), "exec"), vars(module))
        except TaskError:
            raise
        except (Exception, SystemExit) as error:  # a user's program: any error is reported with its line
            message = f"{type(error).__name__}: {_one_line(error)}{_what_to_do(error)}"
            raise TaskError(f"{path}{_line_of(error, path)}: {message}") from error
        finally:
            _LOADING.reset(token)
    return module


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Lets the block import modules beside the file, as when Python runs the file itself."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _task_of_toml(source: bytes, path: Path) -> Task:
    try:
        found = tomllib.loads(source.decode("utf-8-sig"))
    except ValueError as error:
        raise TaskError(f"{path}: expected TOML, got something else: {_one_line(error)}") from error
    table = found.get("task")
    if not isinstance(table, dict):
        raise TaskError(f"{path}: expected a table [task] with data, prompt and score, got none")
    return task_from(table, f"{path}: [task]")


def _line_of(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f" line {error.lineno}"
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" line {line}" if line else ""


def _what_to_do(error: BaseException) -> str:
    """Returns what corrects an error of a task file, to follow its message; empty: not known."""
    if isinstance(error, ImportError) and missing_module(error):
        return f": install it into the environment that millstream runs in ({sys.prefix}), or correct the import"
    return nearest_argument(error) if isinstance(error, Exception) else ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


ROWS_MOST = 5_000


def load_prompts(file: Path | None) -> LoadPrompts:
    """Returns the questions of the task in a file: all, or `ROWS_MOST` spread over its data. Executes the file. Raises
    UsageError without a file."""
    if file is None:
        raise UsageError("--dataset: expected the file that declares the task, as capitals.py, got its kind alone")
    loaded = load_task(*split_name(str(file)))
    if isinstance(loaded.task, StepsTask):
        raise UsageError(f"--dataset: the prompts of {loaded.task.name} are made by its run(): only a task offers them")
    questions = [each for each in questions_of(loaded.task, loaded.base) if not each.trial]
    count = min(len(questions), ROWS_MOST)
    chosen = [questions[at * len(questions) // count] for at in range(count)]
    many = f"{count:,}" if count == len(questions) else f"{count:,} of the {len(questions):,}"
    return LoadPrompts([question.input for question in chosen], f"{many} questions of the task {loaded.task.name}")
