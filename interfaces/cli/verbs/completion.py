"""`millstream completion`: the completion of commands in a shell, and the words that it offers.

Owns the shells' scripts and what may follow the words of an unfinished command. The words come from the parsers of the
verbs, so they are those of the installed version.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ....configuration.declared_options import FlagReader
from ....configuration.errors import DONE
from ....configuration.values import Several, WordChoice
from ...terminal.output import say
from ..command import VERBS, parser_of

HELP = "print the completion script for bash, zsh or fish"
EXAMPLES = ("completion bash",)
# Where no word is offered, the shell completes names of files.
_BASH = """\
_millstream() {
    local IFS=$'\\n'
    COMPREPLY=($(millstream completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _millstream millstream
"""
_SCRIPTS = {
    "bash": _BASH,
    "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": "complete -c millstream -a "
    "'(millstream completion words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n",
}
_SET_UP = 'bash: eval "$(millstream completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc; fish: \
millstream completion fish > ~/.config/fish/completions/millstream.fish'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}. {_SET_UP}"
    parser.add_argument(
        "shell",
        choices=(*_SCRIPTS, "words"),
        metavar="|".join(_SCRIPTS),
        help="print the script that makes this shell complete millstream's commands",
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    if options.shell == "words":
        say("\n".join(offered(options.words)))
    else:
        say(_SCRIPTS[options.shell].rstrip("\n"), is_code=True)
    return DONE


def offered(words: Sequence[str]) -> list[str]:
    """Returns what the last word of a command, without the program's name, can become; empty: nothing is known."""
    *before, begun = words or ("",)
    if not before:
        return [verb for verb in (*VERBS, "--help", "--version") if verb.startswith(begun)]
    if before[0] not in VERBS:
        return []
    return [word for word in _next_words(before[0], before[1:], begun) if word.startswith(begun)]


def _next_words(verb: str, before: Sequence[str], begun: str) -> Iterator[str]:
    parser = parser_of(verb, before)
    for word in before:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser = action.choices[word]
    options = {text: action for action in parser._actions for text in action.option_strings}
    last = options.get(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        yield from _values_of(last)
    elif begun.startswith("-"):
        yield from (text for text, action in options.items() if text[:2] == "--" and action.help != argparse.SUPPRESS)
    else:
        for action in parser._actions:
            if not action.option_strings:
                yield from _values_of(action)


def _values_of(action: argparse.Action) -> Iterator[str]:
    """Yields the values that an option or a positional argument can have, where they are few and known."""
    if action.metavar is not None and "|" in str(action.metavar):
        yield from (word for word in str(action.metavar).split("|") if word.islower())
    elif action.choices is not None:
        yield from map(str, action.choices)
    elif isinstance(action.type, FlagReader):
        kind = action.type.kind.kind if isinstance(action.type.kind, Several) else action.type.kind
        yield from kind.words if isinstance(kind, WordChoice) else ()
