"""`millstream run`: a benchmark from flags, or everything that a run file asks for."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ....bench.evaluation.door.declarations import BUILT_IN, declarations, find, of_word, reproduction, reproductions
from ....configuration.benchmark_options import Known, add_benchmarks, foreign_to, given_to, listed
from ....configuration.declared_options import flag
from ....configuration.errors import UsageError, nearest
from ....configuration.options import (
    SendingOptions,
    add_output,
    add_report,
    add_retrieval,
    add_sending,
    add_sink,
)
from ....configuration.values import Text
from ....format import command_text
from ...terminal.output import note, note_error, say, say_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....bench.evaluation.door.prepared_run import PreparedRun

HELP = f"run a benchmark ({', '.join(BUILT_IN)}), the task of a file, or everything that a run file asks for"
EXAMPLES = (
    f"run {BUILT_IN[0]} --model openai/gpt-6-luna --limit 5 --trials 2 --max-cost 1 --out runs/first",
    "run capitals.py --model openai/gpt-6-luna anthropic/claude-sonnet-5-5 --out runs/capitals",
    f"run {next(iter(reproductions()), 'sweep.toml')} --out runs/whole",
)


def add_arguments(parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    """Adds the options. If the words name a benchmark, `--help` leaves out options that only others take."""
    word, named = _named(words)
    benchmarks = _benchmarks(named)
    what = "|".join((*BUILT_IN, "FILE"))
    verb = parser.prog.rpartition(" ")[2]
    usage = command_text(verb, word).replace("%", "%%") if word else f"millstream {verb} {what}"
    parser.usage = f"{usage} [option…]"
    if named is None:
        each = listed([f"`millstream {verb} {benchmark} --help`" for benchmark in benchmarks], "and")
        others = "the other" if len(benchmarks) == 2 else "the others"
        parser.description = f"{parser.description}. {each} leave out what belongs to {others}."
    parser.add_argument(
        "what",
        metavar=what,
        help="the benchmark; a task, as FILE.py or FILE.py:NAME; or a run file in TOML or YAML, of which "
        f"{listed(reproductions(), 'and')} come with this program",
    )
    parser.add_argument(
        "--out",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="the run's folder; the same command goes on where it stopped (default: a new one, runs/DATE-NAME)",
    )
    add_sink(parser)
    add_report(parser)
    add_benchmarks(parser, benchmarks, named)
    add_sending(parser)
    add_retrieval(parser, is_shown=named not in BUILT_IN or "search" in benchmarks[named].options.__struct_fields__)
    add_output(parser)


def prepared_from(
    options: argparse.Namespace, *, is_sent: bool = True, needs_keys: bool = True
) -> tuple[PreparedRun, ...]:
    """Returns every run that the options ask for, checked. A plan (`is_sent` False) needs no folder, and API keys
    (`needs_keys`) only for a pilot."""
    from ....bench.evaluation.door.benchmark import Order
    from ....bench.evaluation.door.several_orders import SeveralOrders
    from ....bench.evaluation.planning.item_plan import prepare
    from ....bench.evaluation.planning.preparation import of_one_sweep
    from ....configuration.configuration import read_configuration
    from ..new_folder import in_new_folder

    sending: SendingOptions = options.sending
    choice = of_word(options.what)
    if choice is None:
        return _from_file(options, sending, is_sent=is_sent, needs_keys=needs_keys)
    benchmark, values = choice
    benchmarks = _benchmarks(benchmark.name)
    flags = given_to(options, benchmarks, "run")
    if (foreign := foreign_to(benchmark.name, flags, benchmarks, "run")) is not None:
        flag, owner = foreign
        raise UsageError(f"{flag} belongs to `run {owner.name}`, and {benchmark.name} was asked for: leave it out")
    if twice := values.keys() & flags.keys():
        raise UsageError(f"--{twice.pop()}: {options.what} says it already: leave it out")
    run = benchmark.made_of({**flags, **values}, Path())
    configuration = read_configuration(sending.config)

    def prepared_in(out: Path) -> tuple[PreparedRun, ...]:
        order = Order(out=out.absolute(), run=run, sending=sending, configuration=configuration, needs_keys=needs_keys)
        try:
            return (prepare(order),)
        except SeveralOrders as several:
            return of_one_sweep(tuple(map(prepare, several.orders)))

    if options.out or not is_sent:
        return prepared_in(Path(options.out or "-"))
    out, runs = in_new_folder(options.what, prepared_in)
    note(f"millstream: the run's folder is {out} (--out names another)")
    return runs


def _from_file(
    options: argparse.Namespace, sending: SendingOptions, *, is_sent: bool, needs_keys: bool
) -> tuple[PreparedRun, ...]:
    from ....bench.evaluation.data.data_rows import SUFFIXES, suffix_of
    from ....bench.evaluation.door.benchmark import Order
    from ....bench.evaluation.planning.item_plan import prepare
    from ....bench.evaluation.planning.preparation import of_one_sweep
    from ....configuration.run_file import read_run_file

    benchmarks = declarations()
    what: str = options.what
    path, out = Path(what).expanduser(), options.out
    if not path.is_file():
        if (path / "manifest.json").is_file():
            raise UsageError(f"{what} is the folder of a run: go on with it by {command_text('resume', what)}")
        if what.startswith("hf:") or "://" in what:
            raise UsageError(
                f"{what} is no benchmark: download the data (from the Hugging Face hub with "
                "datasets.load_dataset(NAME).save_to_disk(FOLDER)) and name the task that reads them, as FILE.py; "
                "`millstream init` writes a first one"
            )
        packaged = reproduction(what)
        if packaged is None:
            raise UsageError(
                f"benchmark {what!r} is unknown and no such file exists{nearest(what, benchmarks)}; known: "
                f"{', '.join((*benchmarks, *reproductions()))}"
            )
        if is_sent and not out:
            raise UsageError(f"--out: expected a folder, since {what} comes with this program and has none, got none")
        path, out = packaged, out or "-"
    if path.suffix == ".ipynb":
        raise UsageError(f"{what} is a notebook: put the task into FILE.py, or call ms.evaluate in the notebook")
    if suffix_of(path) in SUFFIXES:
        raise UsageError(f"{what} is a file of data: name the task that reads it, as FILE.py or FILE.toml")
    if sending.config is not None:
        raise UsageError(f"--config belongs to a benchmark's own run: {what} holds lanes, providers and prices itself")
    file = read_run_file(path, benchmarks, find, out, given_to(options, benchmarks, "run"))
    return of_one_sweep(
        tuple(
            prepare(
                Order(
                    out=wanted.out,
                    run=wanted.options,
                    sending=sending.over(file.sending),
                    configuration=file.configuration,
                    needs_keys=needs_keys,
                )
            )
            for wanted in file.runs
        )
    )


def _named(words: Sequence[str]) -> tuple[str, str | None]:
    """Returns the word of a command line that names a benchmark, and the benchmark's name; None: none does. A word
    behind a flag may be the flag's value, so it counts only if no other word names one."""
    behind = [word for before, word in pairwise(("", *words)) if before.startswith("-")]
    others = [word for before, word in pairwise(("", *words)) if not before.startswith("-")]
    candidates = (word for word in (*others, *behind) if not word.startswith("-"))
    return next(((word, choice[0].name) for word in candidates if (choice := of_word(word)) is not None), ("", None))


def _benchmarks(named: str | None) -> Known:
    benchmarks = declarations()
    other = None if named is None or named in benchmarks else find(named)
    return benchmarks if other is None else {**benchmarks, other.name: other}


def run(options: argparse.Namespace, *, is_brief: bool = False) -> int:
    return carry_out(prepared_from(options), options, is_brief=is_brief)


def carry_out(
    prepared: Sequence[PreparedRun],
    options: argparse.Namespace,
    *,
    retry: bool = False,
    set_aside: bool = False,
    is_brief: bool = False,
) -> int:
    """Executes runs one after the other and prints their summary. `retry`: failed items are sent again; `set_aside`:
    damaged lines are moved to other files; `is_brief`: the summary of a whole run is one table and the page to open.
    Returns the exit code."""
    from ....bench.evaluation.running.execution import RunResult, execute
    from ....configuration.errors import LOCAL_FAULT
    from ....engine.fault import LocalFault
    from ....wiring.lane_names import unused_lanes
    from ...terminal.progress import watch_on_stderr

    results: list[RunResult] = []
    noted = dict.fromkeys(unused_lanes([each.settings for each in prepared]))
    for remark in noted:
        note(f"millstream: {remark}")
    for number, each in enumerate(prepared, 1):
        for remark in (*each.notes, *each.warnings):
            if remark not in noted:
                note(f"millstream: {remark}")
            noted[remark] = None
        if len(prepared) > 1:
            note(f"millstream: run {number} of {len(prepared)}: {each.out}")
        watch = watch_on_stderr(is_shown=not options.no_progress)
        with redirect_stdout(sys.stderr):  # what code of a benchmark's author prints is no result
            results.append(execute(each, retry=retry, set_aside=set_aside, watch=watch))
        if results[-1].exit_code >= LOCAL_FAULT:
            break
    # Here, since its statistics load numpy, which takes a tenth of a second: the calls begin sooner without it.
    from ..run_summary import as_json, causes, exit_code_of, tell, tell_briefly

    code = exit_code_of(results)
    tells = tell_briefly if is_brief and not any(result.pending or result.failed for result in results) else tell
    say_result(options.json, lambda: as_json(results), lambda: tells(results), error=causes(results))
    for result in results:
        if result.end.fault is not None:
            note_error(f"millstream: {result.end.fault}")
    if not options.no_report:
        from ..run_report import report

        pages: list[str] = []
        for line in report(results):
            # If it can't be written, the scores were printed all the same.
            with suppress(LocalFault):
                if options.json or line.startswith("millstream: "):
                    note(line)
                else:
                    pages.append(line.removeprefix("report: "))
                    # The last one is of all runs together.
                    if not is_brief:
                        say(line)
        if is_brief and pages:
            say(f"open in a browser: {pages[-1]}")
    return code
