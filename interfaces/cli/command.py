"""The command line: finds the verb, reads its options, and turns every error a person can cause into one line.

Knows verbs by name only: each is a module of its own, loaded when it is asked for.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from ...configuration.errors import EXIT_CODES, INTERRUPTED, LOCAL_FAULT, WRONG_USAGE, UsageError, exit_code_of, nearest
from ..terminal.output import note, note_error, say

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    "run",
    "resume",
    "retry",
    "plan",
    "score",
    "report",
    "verify",
    "review",
    "judge",
    "data",
    "models",
    "quota",
    "load",
    "probe",
    "sim",
    "demo",
    "serve",
    "cache",
    "batch",
    "export",
    "completion",
)
_OF_BENCHMARKS = ("run", "plan", "score", "report", "data")


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports a wrong option in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message.removeprefix("argument "))

    def _print_message(self, message: str, file: object = None) -> None:
        say(message.rstrip("\n"))


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code. `argv` None: the process's arguments."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        note("millstream: interrupted")
        return INTERRUPTED
    except ImportError as error:
        from ...engine.missing import missing_module, missing_told

        if missing_module(error) == __package__.partition(".")[0]:
            raise  # a defect of ours
        note_error(f"millstream: {missing_told(error)}")
        return LOCAL_FAULT
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        from ...engine.page_urls import with_shown_addresses

        note_error(f"millstream: {with_shown_addresses(' '.join(str(error).split()))}")
        return code


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(_overview())
        return 0 if arguments else WRONG_USAGE
    verb, *rest = arguments
    if verb == "--version":
        from ... import __version__

        say(f"millstream {__version__}")
        return 0
    if verb not in VERBS:
        what = "option" if verb.startswith("-") else "verb"
        raise UsageError(f"unknown {what} {verb!r}{nearest(verb, VERBS)}; verbs are {', '.join(VERBS)}")
    parser = parser_of(verb, rest)
    try:
        options, unknown = parser.parse_known_args(rest)
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    if unknown:
        _raise_unknown(verb, unknown, parser)
    from ..terminal.remarks import shown_remarks

    with shown_remarks():
        code: int = _module_of(verb).run(options)
    return code


def parser_of(verb: str, words: Sequence[str]) -> argparse.ArgumentParser:
    """Returns a verb's parser. The options of some verbs depend on the benchmark that `words`, the rest of the command
    line, name, or whose run folders they name."""
    module = _module_of(verb)
    parser = _Parser(prog=f"millstream {verb}", description=module.HELP, epilog=EXIT_CODES, allow_abbrev=False)
    module.add_arguments(parser, words) if verb in _OF_BENCHMARKS else module.add_arguments(parser)
    return parser


def _raise_unknown(verb: str, unknown: list[str], parser: argparse.ArgumentParser) -> NoReturn:
    first = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
    if first.startswith("-"):
        known = [text for action in parser._actions for text in action.option_strings if text.startswith("--")]
        raise UsageError(f"{verb}: unknown option {first}{nearest(first, known)}; see millstream {verb} --help")
    raise UsageError(f"{verb}: {first!r} is one word too many; see millstream {verb} --help")


def _module_of(verb: str) -> ModuleType:
    return import_module(f".verbs.{verb}", __package__)


def _overview() -> str:
    lines = ["usage: millstream VERB …", "", "verbs:"]
    lines += [f"  {verb:12}{_module_of(verb).HELP}" for verb in VERBS]
    lines += ["", "millstream VERB --help says what a verb takes; millstream --version which version this is"]
    return "\n".join(lines)
