"""`millstream data`: data sets built, imported and checked, by each benchmark that offers it.

Owns what all of them have in common on the command line: the options of sending and output, and the printing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from ....bench.evaluation.door.declarations import declarations, find
from ....configuration.errors import UsageError
from ....configuration.options import add_output, add_sending
from ...terminal.output import say_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from ....bench.evaluation.door.data_command import DataCommand
    from ....bench.evaluation.door.watch import ItemProgress, OpenRun
    from ....configuration.benchmark_options import Declaration
    from ....wiring.engine import Engine


def _offering(words: Sequence[str] = ()) -> Mapping[str, Declaration]:
    """Returns the benchmarks with a data command: ours, and those of an installed package that the words name."""
    benchmarks = declarations()
    if words and (named := find(words[0])) is not None:
        benchmarks.setdefault(named.name, named)
    return {name: each for name, each in benchmarks.items() if each.data}


HELP = f"import, check and build data sets ({', '.join(_offering())})"
EXAMPLES = tuple(f"data {name} --help" for name in [*_offering()][:3])


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    offering = _offering(words)
    verbs = parser.add_subparsers(dest="data_verb", metavar="|".join(offering), required=True)
    for name, declaration in offering.items():
        command: DataCommand = declaration.data
        of_name = verbs.add_parser(
            name, help=command.about, description=command.about, epilog=parser.epilog, allow_abbrev=False
        )
        of_name.set_defaults(data_command=command)
        command.add_arguments(of_name)
        add_sending(of_name)
        add_output(of_name)


def run(options: argparse.Namespace) -> int:
    command: DataCommand = options.data_command

    def watch(
        engine: Engine, total: int, already: int, item: str, run: OpenRun | None = None
    ) -> AbstractContextManager[ItemProgress]:
        from ...terminal.progress import watch_on_stderr  # not needed where nothing is sent

        return watch_on_stderr(is_shown=not options.no_progress)(engine, total, already, item, run)

    report = command.run(options, watch)
    say_result(options.json, lambda: report.fields, lambda: report.text(_columns()))
    if report.error:
        raise UsageError(report.error)
    return report.exit_code


def _columns() -> int | None:
    """Returns the width of the terminal on stdout; None where stdout is a file, a pipe or closed."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns
