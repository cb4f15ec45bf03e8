"""The error for faults in a benchmark's own code, and the conversion of its exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from ....configuration.errors import exit_code_of
from ....engine.exit_codes import WRONG_USAGE

RAISED, STEPS_EXCEEDED = "raised", "steps_exceeded"
"""How an item failed by its own code: an exception, or more calls than it may make."""


class BenchmarkDefect(Exception):
    """Raised if a benchmark's code raises an exception or returns something unusable. The message names benchmark, item
    and problem. Nothing is in flight then; once the code is fixed, the same command continues."""

    exit_code = WRONG_USAGE


def defect_of(error: BaseException, title: str, item: str | None = None) -> BenchmarkDefect:
    """Returns the BenchmarkDefect for an exception that the benchmark's code raised; it names the item, if there is
    one."""
    if isinstance(error, BenchmarkDefect):
        return error
    where = title if item is None else f"{title}, item {item!r}"
    message = " ".join(str(error).split())
    frames = extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name} line {frames[-1].lineno})" if frames else ""
    return BenchmarkDefect(f"{where}: its code raised {type(error).__name__}{f': {message}' if message else ''}{at}")


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yields the exceptions of a group, also of groups in it; an exception that is no group by itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


@contextmanager
def benchmark_code(title: str) -> Iterator[None]:
    """Runs a block of the benchmark's code. An exception becomes a BenchmarkDefect, unless it has an exit code of its
    own, as UsageError and DatasetError do."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if exit_code_of(error) is not None:
            raise
        raise defect_of(error, title) from error
