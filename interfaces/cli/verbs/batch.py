"""`millstream batch`: an OpenAI Batch file in, one in the same shape out, to any provider."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration.declared_options import flag
from ....configuration.errors import UsageError
from ....configuration.options import add_output, add_sending
from ....configuration.values import ModelName, Text, WordChoice
from ...terminal.output import note, note_error, say, say_json

if TYPE_CHECKING:
    from ...batch.place import BatchPlace
    from ...batch.run import Batch, BatchResult

HELP = "ask an OpenAI Batch file of any provider, and write its answers in the same shape"
EXAMPLES = (
    "batch requests.jsonl answers.jsonl --model openai/gpt-6-luna --max-cost 5",
    "batch requests.jsonl answers.jsonl --retry",
)
_PIPE = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input",
        metavar="IN",
        type=flag(Text("a file of requests, or - for stdin")),
        help="requests, one JSON object a line: custom_id, method, url, body (- for stdin)",
    )
    parser.add_argument(
        "out",
        metavar="OUT",
        type=flag(Text("a file, or - for stdout")),
        help="answers, one a line as they come; the same command goes on where it stopped (- for stdout; what goes "
        "through a pipe can't be gone on with)",
    )
    parser.add_argument(
        "--model",
        type=flag(ModelName()),
        metavar="PROVIDER/MODEL",
        help="ask this model, whatever model a line names",
    )
    parser.add_argument("--in-order", action="store_true", help="put OUT into the order of IN once all is done")
    parser.add_argument(
        "--errors", type=flag(Text("a file")), metavar="FILE", help="errors into a file of their own, not into OUT"
    )
    parser.add_argument("--retry", action="store_true", help="ask failed lines again, and replace their rows")
    parser.add_argument(
        "--set-aside-damaged",
        action="store_true",
        help="move rows that are not what was written into the folder beside OUT, and ask their lines again",
    )
    parser.add_argument(
        "--repeats",
        type=flag(WordChoice(("new", "same"))),
        default="new",
        metavar="new|same",
        help="lines that ask the same get a sample each (new, the default), or all the same answer",
    )
    add_sending(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    is_piped = _PIPE in (options.input, options.out)
    if is_piped:
        _check_pipe_options(options)
    result = _through_pipes(options) if is_piped else _into_file(options)
    return _print_result(result, options)


def _into_file(options: argparse.Namespace) -> BatchResult:
    from ...batch.input import InputFile
    from ...batch.run import carry_out

    with InputFile(Path(options.input)) as source:
        place = _place(options)
        return carry_out(_batch(options, place), source, place)


def _through_pipes(options: argparse.Namespace) -> BatchResult:
    from contextlib import ExitStack

    from ...batch.input import InputFile
    from ...batch.pipe import carry_out_through

    with ExitStack() as opened:
        source = None if options.input == _PIPE else opened.enter_context(InputFile(Path(options.input)))
        place = _place(options)
        batch = _batch(options, place)
        note("millstream: through a pipe: this batch can't be gone on with; what is answered stays in the cache")
        return carry_out_through(batch, source, None if options.out == _PIPE else place.out, place.errors)


def _check_pipe_options(options: argparse.Namespace) -> None:
    for name in ("in_order", "retry", "set_aside_damaged"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')}: expected IN and OUT to be files, got - for one of them")
    for name, word, stream in (("IN", options.input, sys.stdin), ("OUT", options.out, sys.stdout)):
        if word == _PIPE and stream is None:
            # The next file that is opened gets its number.
            raise UsageError(f"{name}: expected - to be open, got {'stdin' if name == 'IN' else 'stdout'} closed")
    if options.json and options.out == _PIPE:
        raise UsageError("--json: expected OUT to be a file, as stdout is where the answers go")


def _place(options: argparse.Namespace) -> BatchPlace:
    """Returns the batch's files with links resolved, so that a file has one name only. Raises UsageError."""
    from ...batch.place import BESIDE, BatchPlace

    if options.errors == _PIPE:
        raise UsageError(f"--errors: expected a file, got {_PIPE}: only answers go to stdout")
    out = Path(os.path.realpath(os.path.expanduser(options.out)))
    errors = None if options.errors is None else Path(os.path.realpath(os.path.expanduser(options.errors)))
    named = [("OUT", out)] if options.out != _PIPE else []
    named += [("--errors", errors)] if errors is not None else []
    for name, path in named:
        try:
            if not path.parent.is_dir():
                raise UsageError(f"{name}: expected a file in a folder that exists, got {path}")
            if any(part.endswith(BESIDE) for part in path.parts):
                raise UsageError(f"{name}: expected a file outside of what is kept beside an output, got {path}")
            if options.input != _PIPE and path.exists() and path.samefile(options.input):
                raise UsageError(f"{name}: expected another file than IN, got {path}")
        except OSError as error:
            raise UsageError(f"{name}: expected a file that can be written, got: {error.strerror}") from error
    if errors == out:
        raise UsageError(f"--errors: expected another file than OUT, got {errors}; without it errors go into OUT")
    return BatchPlace(out, errors)


def _batch(options: argparse.Namespace, place: BatchPlace) -> Batch:
    from ....configuration.configuration import read_configuration, settings_of
    from ...batch.questions import check
    from ...batch.run import Batch

    sending = options.sending
    settings = settings_of(sending)
    names = dict(read_configuration(sending.config).gateway.models)
    if options.model is not None:
        if options.model.startswith(("web/", "search/")):
            raise UsageError(f"--model: expected a language model, got {options.model}")
        check(options.model, settings)
    specification: dict[str, Any] = {"model": options.model, "repeats": options.repeats, "base_url": sending.base_url}
    specification["errors"] = None if place.errors is None else os.path.relpath(place.errors, place.out.parent)
    if names and options.model is None:
        specification["names"] = names
    return Batch(
        settings=settings,
        model=options.model,
        names=names,
        repeats_are_new=options.repeats == "new",
        in_order=options.in_order,
        retry=options.retry,
        set_aside=options.set_aside_damaged,
        show_progress=not options.no_progress,
        said=specification,
    )


def _print_result(result: BatchResult, options: argparse.Namespace) -> int:
    from ...batch.summary import as_json, tell

    if options.json:
        say_json(as_json(result))
    else:
        # The answers may have gone to stdout.
        (note if options.out == _PIPE else say)(tell(result))
    if result.end.fault is not None:
        note_error(f"millstream: {result.end.fault}")
    return result.exit_code
