"""The command `millstream data millstone`: its options, how they go together, and the file that is written, whole or
not at all.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

import argparse
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, WITH_FAILURES, WRONG_USAGE, UsageError
from ....configuration.values import Text
from ...evaluation.door.data_command import DataCommand, DataReport, from_the_cache

if TYPE_CHECKING:
    from ....wiring.running import RunEnd
    from ...evaluation.door.watch import Watch
    from .gathering import FileReports
    from .import_report import ImportResult
    from .rephrase import ParaphraseRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        nargs="*",
        metavar="DIR|FILE",
        help="folders of one JSON file an issue, the authors' checkout (its data/, then its data_new/), data set "
        "files, or tables of a row an issue (CSV, TSV, JSON lines, Parquet, a saved Hugging Face data set); of two "
        "with the same issue the later counts",
    )
    parser.add_argument("--out", type=flag(Text("a file")), metavar="FILE", help="the data set file to write")
    parser.add_argument(
        "--fix-orientation", action="store_true", help="correct each label that its paraphrase's wording contradicts"
    )
    parser.add_argument(
        "--from-pages", type=flag(Text("a folder")), metavar="DIR", help="saved ProCon pages, one an issue, instead"
    )
    parser.add_argument(
        "--rephrase",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="let a model write the six paraphrases of every issue that lacks them: one call an issue, up to five "
        "where the answer can't be used",
    )


def run(options: argparse.Namespace, watch: Watch) -> DataReport:
    from .import_report import as_json, import_text

    out = _out(options)
    result = _import(options, out, watch)
    error = f"no issue of {len(result.gathered.files)} files can be used: {out} was not written"
    return DataReport(
        exit_code=result.exit_code,
        text=lambda width: import_text(result, width),
        fields=as_json(result),
        error=error if result.exit_code == WRONG_USAGE else "",
    )


def _out(options: argparse.Namespace) -> Path:
    """Returns the file to write. Raises UsageError if options contradict each other."""
    if options.from_pages is not None and options.places:
        raise UsageError("data millstone: expected DIR or --from-pages DIR, got both: import one, then the other")
    if options.from_pages is None and not options.places:
        raise UsageError("data millstone: expected at least one DIR, or --from-pages DIR, got none")
    if options.out is None:
        raise UsageError("--out: expected the data set file to write, got none")
    if options.rephrase is None:
        sent = next(iter(options.sending.given()), None)
        if sent is not None:
            raise UsageError(f"--{sent.replace('_', '-')} belongs to --rephrase: nothing is sent without it")
    from ....configuration.data_files import out_file

    return out_file(options.out)


def _gather(options: argparse.Namespace) -> FileReports:
    from ....configuration.data_files import found_at, path_of
    from ..checks import CheckRules
    from .gathering import gather

    needs_paraphrases = options.from_pages is None and options.rephrase is None
    rules = CheckRules(options.fix_orientation, needs_paraphrases)
    if options.from_pages is not None:
        from .pages import read_pages

        return gather(read_pages(_folder(options.from_pages)), rules)
    from .table import read_issues

    places = [path_of(place) for place in options.places]
    for place in places:
        expected = f"{place}: expected a folder of issues or a data set file"
        if found_at(place, expected) is None:
            raise UsageError(f"{expected}, got nothing there")
    return gather(read_issues(places), rules)


def _folder(text: str) -> Path:
    from ....configuration.data_files import found_at, path_of

    folder = path_of(text)
    expected = f"--from-pages {folder}: expected a folder of saved pages"
    status = found_at(folder, expected)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{expected}, got none there")
    return folder


def _import(options: argparse.Namespace, out: Path, watch: Watch) -> ImportResult:
    from msgspec import structs

    from ....configuration.data_files import write_once
    from .import_report import ImportResult

    result = ImportResult(gathered=_gather(options), exit_code=DONE, out=str(out))
    code = WITH_FAILURES if result.gathered.faults else DONE
    if options.rephrase is not None and result.gathered.without_paraphrases():
        rephrasing, end = _rephrase(options, result.gathered, out, watch)
        result = structs.replace(result, rephrasing=rephrasing)
        if rephrasing.pending:
            return structs.replace(
                result,
                exit_code=end.exit_code(is_pending=True, has_failures=False),
                interrupted_by=end.signal,
                keeps_answers=options.sending.mode != "live",
            )
        result = structs.replace(result, gathered=result.gathered.completed(rephrasing.paraphrases))
        code = WITH_FAILURES if rephrasing.failures else code
    elif options.rephrase is not None:
        from ....engine.remarks import remark

        remark("every issue has its paraphrases: nothing was asked")
    gathered = result.gathered
    if not gathered.drafts:
        # If no model was asked, the input itself has nothing usable.
        return structs.replace(result, exit_code=WRONG_USAGE if result.rephrasing is None else code)
    dataset = gathered.dataset(out.stem)
    is_written = write_once(out, gathered.encoded())
    return structs.replace(result, exit_code=code, dataset=dataset, is_written=is_written)


def _rephrase(
    options: argparse.Namespace, gathered: FileReports, out: Path, watch: Watch
) -> tuple[ParaphraseRun, RunEnd]:
    from ....configuration.configuration import read_configuration, settings_for
    from ....configuration.data_files import make_room
    from ....engine.remarks import remark
    from ....wiring.lane_names import unused_lanes
    from ...evaluation.data.ask_all import ask_all
    from ...evaluation.planning.preparation import check_cost_is_bounded
    from .rephrase import ParaphraseRun

    model, sending = options.rephrase, options.sending
    questions = {draft.id: draft.question for draft in gathered.without_paraphrases()}
    is_there = out.exists()
    if is_there:
        # An existing file is never overwritten, so no answer is paid for that would be thrown away.
        sending = from_the_cache(sending, out)
    else:
        make_room(out)
    settings = settings_for((model,), sending, read_configuration(sending.config))
    check_cost_is_bounded({model: None}, settings, has_option=False)
    for sentence in unused_lanes([settings]):
        remark(sentence)
    rephrasing = ParaphraseRun(model, questions)
    end = ask_all(rephrasing.run, settings, f"data --rephrase {model}", watch)
    missing = sum(reason.startswith("not_cached") for reason in rephrasing.failures.values())
    if is_there and missing:
        raise UsageError(
            f"--out {out} exists, and {missing} issues would have to be asked: nothing was sent or overwritten; choose "
            f"another --out, or move it away"
        )
    return rephrasing, end


DATA = DataCommand(
    "Reads issues in the authors' released format, tables or saved pages, checks everything, and writes one data set "
    "file.",
    add_arguments,
    run,
)
