"""Output for people and programs: results on stdout, everything else on stderr. On a terminal lines fit its width.

Output to a closed pipe is dropped and is no error. A full disk is an error for a result, not for a remark. Control
characters are replaced, since messages of faults hold texts of providers.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from ...report.text import inert
from .fitting import fitted

_RED = ("\x1b[31m", "\x1b[0m")


def say(text: str, *, is_code: bool = False) -> None:
    """Writes a result to stdout; on a terminal its lines fit the width, but for code."""
    _write_result(text if is_code else _fitted_to(sys.stdout, text))


def say_error(text: str) -> None:
    """Writes the part of a result that says what went wrong as `say` does, in red on a terminal that shows colours;
    nothing if the text is empty."""
    if text:
        _write_result(_fitted_to(sys.stdout, text), *(_RED if has_colours(sys.stdout) else ()))


def note(text: str) -> None:
    """Writes a remark to stderr. If that fails (a log on a full disk), the remark is lost and the run goes on."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, _fitted_to(sys.stderr, text))


def note_error(text: str) -> None:
    """Writes an error to stderr as `note` does, in red on a terminal that shows colours."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, _fitted_to(sys.stderr, text), *(_RED if has_colours(sys.stderr) else ()))


def has_colours(stream: TextIO | None) -> bool:
    """Returns whether the stream is a terminal that shows colours; NO_COLOR and TERM=dumb turn them off."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and not is_plain and stream.isatty()


def _fitted_to(stream: TextIO | None, text: str) -> str:
    """Returns the text as wide as the terminal that the stream writes to; unchanged if it is none."""
    try:
        if stream is None or not stream.isatty():
            return text
        return fitted(text, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return text  # the terminal is gone, or has no size


def say_json(value: Any) -> None:
    """Writes one JSON object to stdout."""
    import orjson

    _write_result(orjson.dumps(value, default=dict, option=orjson.OPT_INDENT_2).decode())


def say_result(is_json: bool, value: Callable[[], Any], text: Callable[[], str], error: str = "") -> None:
    """Writes a verb's result to stdout: as one JSON object, or as a text for a person, after the `error` that cut it
    short."""
    if is_json:
        say_json(value())
    else:
        say_error(error)
        say(text())


def _write_result(text: str, before: str = "", after: str = "") -> None:
    try:
        _write(sys.stdout, text, before, after)
    except OSError as error:
        from ...engine.fault import LocalFault

        raise LocalFault(
            f"the result can't be written to stdout ({error.strerror}): what is in the run's folder is not touched by "
            f"that; make room, then ask again"
        ) from error


def _write(stream: TextIO | None, text: str, before: str = "", after: str = "") -> None:
    """Writes lines without control characters, between escape sequences of ours."""
    if stream is None:
        return
    lines = before + "\n".join(inert(line) for line in text.split("\n")) + after + "\n"
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(lines.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        # The interpreter flushes once more at its end, and would complain again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise
