"""The command line: finds the verb, reads its options, and turns every error a person can cause into one line.

Knows verbs by name only: each is a module of its own, loaded when it is asked for.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from ...configuration.errors import (
    EXIT_CODES,
    INTERRUPTED,
    LOCAL_FAULT,
    WRONG_USAGE,
    Mistakes,
    UsageError,
    exit_code_of,
    nearest,
)
from ..terminal.output import note, note_error, say

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = {
    "Evaluate": ("init", "run", "plan", "resume", "retry", "ctl", "score", "rescore", "report", "review", "judge"),
    "Measure": ("load", "probe", "quota"),
    "Serve": ("serve", "view", "batch"),
    "Data": ("data", "cache", "export", "verify"),
    "Try": ("demo", "sim", "models", "completion"),
}
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)
# Words of other programs for these verbs.
_OTHER_WORDS = {"label": "review", "eval": "run", "evaluate": "run", "gateway": "serve", "proxy": "serve"}
_BEGIN = (
    ("demo", "see it work on this machine; needs no API key"),
    ("models", "which providers there are, and whose API key is set"),
    ("plan {benchmark} --model openai/gpt-6-luna --limit 5", "what a run would send and cost"),
)
# Above this many options the usage names none.
_OPTIONS_IN_USAGE = 8
_READERS = ("resume", "retry", "score", "rescore", "report", "review", "judge", "cache", "export", "verify")
# What a field that is missing, or of another type, makes of the code that reads it.
_OF_FIELDS = (LookupError, TypeError, AttributeError, ValueError, RuntimeError, StopIteration)
_OF_BENCHMARKS = ("run", "plan", "score", "report", "data")


class _Parser(argparse.ArgumentParser):
    """An argument parser that collects the values it can't use, reports each in one line, without the usage, and ends
    its help with examples."""

    examples: Sequence[str] = ()

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.mistakes: list[str] = []

    def error(self, message: str) -> NoReturn:
        raise _of_all([*self.mistakes, message.removeprefix("argument ")])

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self.mistakes.append(str(error).removeprefix("argument "))

    def format_help(self) -> str:
        if not self.examples:
            return super().format_help()
        lines = "".join(f"  millstream {example}\n" for example in self.examples)
        return f"{super().format_help()}\nexamples:\n{lines}"

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
        from ...engine.missing import missing_module, missing_text

        if missing_module(error) == __package__.partition(".")[0]:
            raise  # a defect of ours
        note_error(f"millstream: {missing_text(error)}")
        return LOCAL_FAULT
    except Exception as error:
        code, message = exit_code_of(error), str(error)
        if code is None:
            if not (folder := _folder_read_by(arguments)) or not isinstance(error, _OF_FIELDS):
                raise
            from traceback import extract_tb

            place = extract_tb(error.__traceback__)[-1]
            code, message = (
                LOCAL_FAULT,
                (
                    f"{folder}: its manifest.json is none of ours ({error!r:.200} in {Path(place.filename).name} line "
                    f"{place.lineno}): bring back the folder as it was written; if it is, this is a defect of ours"
                ),
            )
        from ...engine.page_urls import with_shown_addresses

        for line in message.split("\n") if isinstance(error, Mistakes) else (message,):
            note_error(f"millstream: {with_shown_addresses(' '.join(line.split()))}")
        return code


def _folder_read_by(arguments: list[str]) -> str:
    """Returns the run's folder that a command reads by its manifest, which may come from somebody else; empty: none."""
    verb, *words = arguments or [""]
    folders = ((word, Path(f"{word}{beside}")) for word in words for beside in ("", ".millstream") if verb in _READERS)
    return next((word for word, folder in folders if (folder / "manifest.json").is_file()), "")


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        say(_beginning())
        return WRONG_USAGE
    if arguments[0] == "help" and len(arguments) > 1:
        arguments = [*arguments[1:], "--help"]
    if arguments[0] in ("-h", "--help", "help"):
        say(_overview())
        return 0
    verb, *rest = arguments
    if verb in ("-V", "--version"):
        from ... import __version__

        say(f"millstream {__version__}")
        return 0
    if verb not in VERBS:
        is_option = verb.startswith("-")
        what = "option" if is_option else "verb"
        near = nearest(verb, ("--version", "--help"), cutoff=0.75) if is_option else nearest(verb, VERBS)
        hint = f" (here: {_OTHER_WORDS[verb]})" if verb in _OTHER_WORDS else near
        raise UsageError(f"unknown {what} {verb!r}{hint}; verbs are {', '.join(VERBS)}")
    parser = parser_of(verb, rest)
    try:
        options, unknown = parser.parse_known_args(rest)
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    inner = _innermost(parser, rest)
    mistakes = list(dict.fromkeys([*parser.mistakes, *inner.mistakes]))
    if unknown:
        mistakes.append(_unknown(verb, unknown, inner))
    if mistakes:
        raise _of_all(mistakes)
    from ...configuration.options import with_sending
    from ..terminal.remarks import shown_remarks

    with shown_remarks():
        code: int = _module_of(verb).run(with_sending(options))
    return code


def _of_all(mistakes: Sequence[str]) -> UsageError:
    return UsageError(mistakes[0]) if len(mistakes) == 1 else Mistakes("\n".join(mistakes))


def parser_of(verb: str, words: Sequence[str]) -> _Parser:
    """Returns a verb's parser. The options of some verbs depend on the benchmark that `words`, the rest of the command
    line, name, or whose run folders they name."""
    module = _module_of(verb)
    parser: _Parser = _Parser(prog=f"millstream {verb}", description=module.HELP, epilog=EXIT_CODES, allow_abbrev=False)
    module.add_arguments(parser, words) if verb in _OF_BENCHMARKS else module.add_arguments(parser)
    parser.examples = module.EXAMPLES
    if parser.usage is None and len(parser._actions) > _OPTIONS_IN_USAGE:
        parser.usage = _short_usage(parser)
    return parser


def _short_usage(parser: argparse.ArgumentParser) -> str:
    """Returns the usage without the names of its many options, which follow it anyway."""
    words = [parser.prog.replace("%", "%%"), "[option…]"]
    for action in parser._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            name = f"{name}…" if action.nargs in ("+", "*") else name
            words.append(f"[{name}]" if action.nargs in ("?", "*") else name)
    return " ".join(words)


def _unknown(verb: str, unknown: list[str], parser: argparse.ArgumentParser) -> str:
    """Returns the sentence on the first word of a command line that the parser does not know."""
    usage = parser.prog
    if parser.usage and "|" not in parser.usage:
        # With the benchmark that the command line names: its help leaves out what belongs to others.
        usage = parser.usage.partition(" [")[0]
    first = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
    if first.startswith("-"):
        flags = [text for action in parser._actions for text in action.option_strings if text.startswith("--")]
        return f"{verb}: unknown option {first}{nearest(first, flags)}; see {usage} --help"
    return f"{verb}: {first!r} is one word too many; see {usage} --help"


def _innermost(parser: _Parser, words: Sequence[str]) -> _Parser:
    """Returns the parser of the verb within a verb that the words name, as in `data NAME`, else the given one."""
    inner = next((each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction)), {})
    return next((inner[word] for word in words if word in inner), parser)


def _module_of(verb: str) -> ModuleType:
    return import_module(f".verbs.{verb}", __package__)


def _overview() -> str:
    lines = ["usage: millstream VERB …"]
    for group, verbs in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {verb:12}{_module_of(verb).HELP}" for verb in verbs)]
    lines += ["", "millstream VERB --help: its options, with examples; millstream --version: which version this is"]
    return "\n".join(lines)


def _beginning() -> str:
    """Returns the first commands for somebody who gives none."""
    from ...bench.evaluation.door.declarations import BUILT_IN

    commands = [(command.format(benchmark=BUILT_IN[0]), what) for command, what in _BEGIN]
    width = max(len(command) for command, _ in commands)
    lines = [f"  millstream {command:{width}}  {what}" for command, what in commands]
    return "\n".join(("millstream runs evaluations of language models. To begin:", *lines, "All: millstream --help"))
