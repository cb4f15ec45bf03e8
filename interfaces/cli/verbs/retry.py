"""`millstream retry`: sends the calls of a run again that failed for good, and those that are pending."""

from __future__ import annotations

import argparse
from pathlib import Path

from ....configuration.options import add_run_options
from ...terminal.output import note
from .resume import prepared_of

HELP = "send the failed items of a run again"
EXAMPLES = ("retry runs/first",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder; options not given here are those it ran with")
    add_run_options(parser)


def run(options: argparse.Namespace) -> int:
    from ....engine.runs.run_folder import FAILURES, whole_lines
    from .run import carry_out

    folder = Path(options.folder)
    prepared = prepared_of(folder, options)
    failed = whole_lines(folder, FAILURES)
    item = "call" if prepared.benchmark.has_calls else prepared.benchmark.unit
    again = f"1 failed {item} is asked again" if failed == 1 else f"{failed:,} failed {item}s are asked again"
    note(f"millstream: {again if failed else f'no {item} of this run failed'}")
    return carry_out((prepared,), options, retry=failed > 0)
