"""`millstream data`: data sets built, imported and checked.

Owns the arguments, what they may mean together, and the one file that is written: whole, or not at all.
"""

from __future__ import annotations

import argparse
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import values
from ..options import Sending, add_output, add_sending, flag, sending_from
from ..output import note, say, say_json
from ..refusal import DONE, RESUMABLE, SIGNAL, WITH_FAILURES, WRONG_USAGE, UsageError
from ..values import Text, Whole

if TYPE_CHECKING:
    from ...bench.millstone.importing.gathering import Gathered
    from ...bench.millstone.importing.rephrase import Rephrasing
    from ..import_report import Told

HELP = "import, check and build data sets (millstone, chameleon)"
_MILLSTONE = (
    "Reads issues in the authors' released format, or saved pages, checks everything, and writes one data set file."
)
_CHAMELEON = (
    "Lets a model write conversations: topics of twelve domains, then fifteen questions on each, every one checked."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="data_verb", metavar="millstone|chameleon", required=True)
    _add_millstone(parser, verbs)
    _add_chameleon(parser, verbs)


def _add_chameleon(parser: argparse.ArgumentParser, verbs: Any) -> None:
    chameleon = verbs.add_parser(
        "chameleon", help=_CHAMELEON, description=_CHAMELEON, epilog=parser.epilog, allow_abbrev=False
    )
    chameleon.add_argument(
        "--model", type=flag(values.ModelName()), metavar="PROVIDER/MODEL", help="who writes topics and conversations"
    )
    chameleon.add_argument(
        "--topics",
        type=flag(Whole("topics", 1, 100_000)),
        metavar="N",
        help="so many conversations in all, in the published shares of the domains (default: the published 1,180)",
    )
    chameleon.add_argument(
        "--topics-from",
        type=flag(Text("a file")),
        metavar="FILE",
        help="one conversation on each of these instead: a JSON object of domains with lists of topics, or a CSV with "
        "the columns domain and topic",
    )
    chameleon.add_argument("--out", type=flag(Text("a file")), metavar="FILE", help="the data set file to write")
    add_sending(chameleon)
    add_output(chameleon)


def _add_millstone(parser: argparse.ArgumentParser, verbs: Any) -> None:
    millstone = verbs.add_parser(
        "millstone", help=_MILLSTONE, description=_MILLSTONE, epilog=parser.epilog, allow_abbrev=False
    )
    millstone.add_argument(
        "places",
        nargs="*",
        metavar="DIR|FILE",
        help="folders of one JSON file an issue, the authors' checkout (its data/, then its data_new/), or data set "
        "files; of two with the same issue the later counts",
    )
    millstone.add_argument("--out", type=flag(Text("a file")), metavar="FILE", help="the data set file to write")
    millstone.add_argument(
        "--fix-orientation", action="store_true", help="correct each label that its paraphrase's wording contradicts"
    )
    millstone.add_argument(
        "--from-pages", type=flag(Text("a folder")), metavar="DIR", help="saved ProCon pages, one an issue, instead"
    )
    millstone.add_argument(
        "--rephrase",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="let a model write the six paraphrases of every issue that lacks them: one call an issue, up to five "
        "where the answer can't be used",
    )
    add_sending(millstone)
    add_output(millstone)


def run(options: argparse.Namespace) -> int:
    return _chameleon(options) if options.data_verb == "chameleon" else _millstone(options)


def _chameleon(options: argparse.Namespace) -> int:
    from ..conversation_writing import write_conversations
    from ..writing_report import as_json, tell

    written = write_conversations(options)
    if options.json:
        say_json(as_json(written))
    else:
        say(tell(written))
    return written.exit_code


def _millstone(options: argparse.Namespace) -> int:
    from ..import_report import as_json, tell

    out = _out(options)
    told = _import(options, out)
    if options.json:
        say_json(as_json(told))
    else:
        say(tell(told, _columns()))
    if told.exit_code == WRONG_USAGE:
        raise UsageError(f"no issue of {len(told.gathered.files)} files can be used: {out} was not written")
    return told.exit_code


def _columns() -> int | None:
    """Of the terminal that stdout is; None where it is a file or a pipe, or closed."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _out(options: argparse.Namespace) -> Path:
    """Where to write, and every way in which the options can't go together."""
    if options.from_pages is not None and options.places:
        raise UsageError("data millstone: expected DIR or --from-pages DIR, got both: import one, then the other")
    if options.from_pages is None and not options.places:
        raise UsageError("data millstone: expected at least one DIR, or --from-pages DIR, got none")
    if options.out is None:
        raise UsageError("--out: expected the data set file to write, got none")
    if options.rephrase is None:
        sent = next((name for name, value in sending_from(options).as_dict().items() if value is not None), None)
        if sent is not None:
            raise UsageError(f"--{sent.replace('_', '-')} belongs to --rephrase: nothing is sent without it")
    from ..data_files import out_file

    return out_file(options.out)


def _gather(options: argparse.Namespace) -> Gathered:
    from ...bench.millstone.importing.checks import Rules
    from ...bench.millstone.importing.gathering import gather
    from ..data_files import found_at, path_of

    needs_paraphrases = options.from_pages is None and options.rephrase is None
    rules = Rules(options.fix_orientation, needs_paraphrases)
    if options.from_pages is not None:
        from ...bench.millstone.importing.pages import read_pages

        return gather(read_pages(_folder(options.from_pages)), rules)
    from ...bench.millstone.importing.checkout import read_places

    places = [path_of(place) for place in options.places]
    for place in places:
        expected = f"{place}: expected a folder of issues or a data set file"
        if found_at(place, expected) is None:
            raise UsageError(f"{expected}, got nothing there")
    return gather(read_places(places), rules)


def _folder(given: str) -> Path:
    from ..data_files import found_at, path_of

    folder = path_of(given)
    expected = f"--from-pages {folder}: expected a folder of saved pages"
    found = found_at(folder, expected)
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{expected}, got none there")
    return folder


def _import(options: argparse.Namespace, out: Path) -> Told:
    from ..data_files import write_once
    from ..import_report import Told

    gathered = _gather(options)
    code = WITH_FAILURES if gathered.faults else DONE
    rephrasing: Rephrasing | None = None
    if options.rephrase is not None and gathered.without_paraphrases():
        rephrasing, signal = _rephrase(options, gathered, out)
        if rephrasing.pending:
            return Told(
                gathered=gathered,
                exit_code=RESUMABLE if signal is None else SIGNAL + signal,
                out=str(out),
                rephrasing=rephrasing,
                interrupted_by=signal,
                keeps_answers=options.mode != "live",
            )
        gathered = gathered.completed(rephrasing.paraphrases)
        code = WITH_FAILURES if rephrasing.failures else code
    elif options.rephrase is not None:
        note("millstream: every issue has its paraphrases: nothing was asked")
    if not gathered.drafts:
        # Where no model was asked, it is the input that holds nothing.
        code = WRONG_USAGE if rephrasing is None else code
        return Told(gathered=gathered, exit_code=code, out=str(out), rephrasing=rephrasing)
    dataset = gathered.dataset(out.stem)
    is_written = write_once(out, gathered.encoded())
    return Told(
        gathered=gathered,
        exit_code=code,
        out=str(out),
        dataset=dataset,
        is_written=is_written,
        rephrasing=rephrasing,
    )


def _rephrase(options: argparse.Namespace, gathered: Gathered, out: Path) -> tuple[Rephrasing, int | None]:
    from ..configuration import read_configuration, settings_for
    from ..data_files import make_room
    from ..paraphrasing import write_paraphrases
    from ..preparation import check_cost_is_bounded

    model, sending = options.rephrase, sending_from(options)
    questions = {draft.id: draft.question for draft in gathered.without_paraphrases()}
    is_there = out.exists()
    if is_there:
        # What is there is never overwritten, so nothing is paid for that could only be thrown away.
        sending = _from_the_cache(sending, out)
    else:
        make_room(out)
    settings = settings_for((model,), sending, read_configuration(sending.config))
    check_cost_is_bounded({model: None}, settings, has_option=False)
    rephrasing, signal = write_paraphrases(model, questions, settings, show_progress=not options.no_progress)
    missing = sum(reason.startswith("not_cached") for reason in rephrasing.failures.values())
    if is_there and missing:
        raise UsageError(
            f"--out {out} exists, and {missing} issues would have to be asked: nothing was sent or overwritten; choose "
            f"another --out, or move it away"
        )
    return rephrasing, signal


def _from_the_cache(sending: Sending, out: Path) -> Sending:
    if sending.mode == "live":
        raise UsageError(f"--out {out} exists, and mode live would ask again: choose another --out, or move it away")
    return replace(sending, mode="strict")
