"""`millstream run`: a benchmark from flags, or everything that a run file asks for."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..benchmark_options import KINDS, NEEDED, add_benchmarks, foreign_to, options_from
from ..benchmark_options import given as benchmark_given
from ..options import Sending, add_output, add_report, add_retrieval, add_sending, add_sink, flag, sending_from
from ..output import note, say, say_json
from ..refusal import UsageError, nearest
from ..values import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..preparation import Prepared

HELP = "run a benchmark (millstone, chameleon), or everything that a run file asks for"
BENCHMARKS = tuple(KINDS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="millstone|chameleon|FILE", help="the benchmark, or a run file in TOML or YAML")
    parser.add_argument(
        "--out",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="the run's folder; the same command goes on where it stopped",
    )
    add_sink(parser)
    add_report(parser)
    add_benchmarks(parser)
    add_sending(parser)
    add_retrieval(parser)
    add_output(parser)


def narrow_help(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """With a benchmark named, `--help` leaves out what belongs to the others alone."""
    verb = parser.prog.rpartition(" ")[2]
    named = next((word for word in words if word in BENCHMARKS), None)
    parser.usage = f"millstream {verb} {named or 'millstone|chameleon|FILE'} [option…]"
    if named is None:
        each = " and ".join(f"`millstream {verb} {benchmark} --help`" for benchmark in BENCHMARKS)
        parser.description = f"{parser.description}. {each} leave out what belongs to the other."
        return
    others = tuple(f"{benchmark} alone" for benchmark in BENCHMARKS if benchmark != named)
    for group in parser._action_groups:
        if (group.title or "").startswith(others):
            for action in group._group_actions:
                action.help = argparse.SUPPRESS


def prepared_from(
    options: argparse.Namespace, *, is_sent: bool = True, needs_keys: bool = True
) -> tuple[Prepared, ...]:
    """Every run that the options ask for, all of them checked. A plan needs no folder, and a key only for its pilot."""
    from ..benchmarks import prepare
    from ..configuration import read_configuration

    given = benchmark_given(options)
    sending = sending_from(options)
    if options.what not in BENCHMARKS:
        return _from_file(options, given, sending, needs_keys=needs_keys)
    benchmark: str = options.what
    if (foreign := foreign_to(benchmark, given)) is not None:
        raise UsageError(f"{foreign[0]} belongs to `run {foreign[1]}`, and {benchmark} was asked for: leave it out")
    for name in NEEDED[benchmark]:
        if name not in given:
            raise UsageError(f"--{name}: expected at least one model as provider/model, got none")
    if is_sent and not options.out:
        raise UsageError("--out: expected the run's folder, got none")
    run = options_from(benchmark, given, Path())
    out = Path(options.out or "-").absolute()
    return (prepare(out, run, sending, read_configuration(sending.config), needs_keys=needs_keys),)


def _from_file(
    options: argparse.Namespace, given: dict[str, object], sending: Sending, *, needs_keys: bool
) -> tuple[Prepared, ...]:
    from ..benchmarks import prepare
    from ..preparation import of_one_sweep
    from ..run_file import read_run_file

    what: str = options.what
    path = Path(what).expanduser()
    if not path.is_file():
        known = ", ".join(BENCHMARKS)
        raise UsageError(
            f"benchmark {what!r} is unknown and no such file exists{nearest(what, BENCHMARKS)}; known: {known}"
        )
    if given:
        flag = "--" + next(iter(given)).replace("_", "-")
        raise UsageError(f"{flag} belongs to `run {' or '.join(BENCHMARKS)}`: in {what} it stands under [run.…]")
    if sending.config is not None:
        raise UsageError(f"--config belongs to a benchmark's own run: {what} holds lanes, providers and prices itself")
    file = read_run_file(path, options.out)
    return of_one_sweep(
        tuple(
            prepare(wanted.out, wanted.benchmark, sending.over(file.sending), file.configuration, needs_keys=needs_keys)
            for wanted in file.runs
        )
    )


def run(options: argparse.Namespace) -> int:
    return carry_out(prepared_from(options), options)


def carry_out(
    prepared: Sequence[Prepared], options: argparse.Namespace, *, retry: bool = False, set_aside: bool = False
) -> int:
    """Execute runs one after the other and tell what they came to; the exit code."""
    from ...engine.fault import LocalFault
    from ..execution import Manner, Result, execute
    from ..refusal import LOCAL_FAULT
    from ..summary import as_json, exit_code_of, tell

    results: list[Result] = []
    for number, each in enumerate(prepared, 1):
        for remark in (*each.notes, *each.warnings):
            note(f"millstream: {remark}")
        if len(prepared) > 1:
            note(f"millstream: run {number} of {len(prepared)}: {each.out}")
        manner = Manner(retry=retry, set_aside=set_aside, show_progress=not options.no_progress)
        results.append(execute(each, manner))
        if results[-1].exit_code >= LOCAL_FAULT:
            break
    if options.json:
        say_json(as_json(results))
    else:
        say(tell(results))
    code = exit_code_of(results)
    for result in results:
        if result.fault is not None:
            note(f"millstream: {result.fault}")
    if not options.no_report:
        from ..run_report import report

        for line in report(results):
            # Where it can't be told, the scores have been all the same.
            with suppress(LocalFault):
                note(line) if options.json or line.startswith("millstream: ") else say(line)
    return code
