"""`millstream review`: a person labels a sample of a run's answers, and sees how far our readings agree.

At a terminal it asks; elsewhere, or with --csv, it writes a file to be filled in and reads it again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration import values
from ....configuration.errors import DONE, UsageError
from ....configuration.options import flag
from ....report.text import table
from ...terminal.output import note, say, say_json

if TYPE_CHECKING:
    from ....bench.evaluation.labelling.comparison import LabelAgreement
    from ....bench.evaluation.labelling.label_file import LabelFile
    from ....bench.evaluation.labelling.sample import AnswerFile, SampleEntry
    from ....metrics.statistics.agreement import Agreement

HELP = "label a sample of a run's answers, and see how far the readings agree"
LABELS_FILE = "review.csv"
SAMPLE_SIZE = 500
_COLUMNS = ("reading", "labelled", "agree", "share", "95% interval", "kappa", "95% interval")


class _Seed(values.WholeNumber):
    @property
    def expected(self) -> str:
        return f"a seed: a whole number from {self.least} to {self.most}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder, or another that holds a records.jsonl")
    parser.add_argument(
        "--sample",
        type=flag(values.WholeNumber("answers", 1, 100_000)),
        metavar="N",
        help=f"answers to draw, spread evenly over models and temperatures (default: {SAMPLE_SIZE})",
    )
    parser.add_argument(
        "--seed", type=flag(_Seed("", 0, 10**9)), metavar="S", help="another seed draws another sample (default: 0)"
    )
    parser.add_argument(
        "--csv",
        type=flag(values.Text("a file")),
        metavar="FILE",
        help=f"write the sample to FILE, or read its labels (default without a terminal: DIR/{LABELS_FILE})",
    )
    parser.add_argument("--json", action="store_true", help="the agreement as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from ....bench.evaluation.labelling.comparison import compare

    folder = Path(options.folder)
    path = folder / LABELS_FILE if options.csv is None else Path(options.csv)
    is_new = not path.exists()
    is_dialogue = options.csv is None and _is_at_a_terminal()
    answers = _answers_of(folder, is_shown=is_new or is_dialogue)
    file, sample = _begun(folder, path, options, answers) if is_new else _read(folder, path, options, answers)
    if is_dialogue:
        _hold(file, sample)
    compared = compare(sample, file.given)
    if options.json:
        say_json(_as_json(folder, file, compared))
    elif file.labelled:
        say(_told(file, compared))
    elif is_new and not is_dialogue:
        say(
            f"{path}: {len(file):,} answers are written: {_fill_in(sample)}; then the same command tells the "
            f"agreement. A ' in front of a cell keeps a spreadsheet from computing it."
        )
    else:
        say(f"{path}: none of {len(file):,} answers is labelled yet: {_fill_in(sample)}")
    return DONE


def _answers_of(folder: Path, *, is_shown: bool) -> AnswerFile:
    """Returns the answers of a run, or of another program's records, with their benchmark's questions about them."""
    from ....bench.evaluation.labelling.sample import AnswerFile
    from ....bench.evaluation.registry import benchmark_of
    from ....engine.runs.run_folder import MANIFEST, RECORDS
    from ...batch.place import check_is_no_batch
    from .resume import manifest_of

    check_is_no_batch(folder)
    has_records, has_manifest = (folder / RECORDS).is_file(), (folder / MANIFEST).exists()
    if not has_records and not has_manifest and not any(folder.glob(f"*/{MANIFEST}")):
        raise UsageError(f"{folder}: expected a run's folder, or another that holds a {RECORDS}, got none there")
    manifest = manifest_of(folder) if has_manifest or not has_records else None
    if not has_records:
        raise UsageError(f"{folder}: expected a run with answers, got no {RECORDS}: nothing to label")
    benchmark = benchmark_of(folder)
    return AnswerFile(folder / RECORDS, benchmark.labeller(manifest, is_shown=is_shown), benchmark.title)


def _is_at_a_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _begun(
    folder: Path, path: Path, options: argparse.Namespace, answers: AnswerFile
) -> tuple[LabelFile, Sequence[SampleEntry]]:
    """Creates a file of labels and returns it with its sample. Nothing is drawn or written if anything is wrong."""
    from ....bench.evaluation.labelling.label_file import begin

    drawn = _drawn(options, answers)
    if not drawn:
        raise UsageError(f"{folder}: expected answers with a text in its records, got none: nothing to label")
    file = begin(path, drawn)
    asked = options.sample or SAMPLE_SIZE
    if len(drawn) < asked:
        note(f"millstream: {asked:,} answers asked for, {len(drawn):,} are there: the sample is all of them")
    return file, drawn


def _drawn(options: argparse.Namespace, answers: AnswerFile) -> list[SampleEntry]:
    return answers.draw(options.sample or SAMPLE_SIZE, options.seed or 0)


def _read(
    folder: Path, path: Path, options: argparse.Namespace, answers: AnswerFile
) -> tuple[LabelFile, Sequence[SampleEntry]]:
    """Returns an existing file of labels and its sample. Raises UsageError for options that ask for another sample."""
    from ....bench.evaluation.labelling.label_file import LabelFile, read

    sheet = read(path)
    found = answers.find(sheet.keys)
    unknown = [at for at, key in enumerate(sheet.keys) if key not in found]
    if unknown:
        raise UsageError(
            f"{sheet.where(unknown[0])}: expected an answer of {folder}, got {sheet.keys[unknown[0]]} "
            f"({len(unknown):,} of {len(sheet):,} rows are of no answer there): is it a sample of another run?"
        )
    if options.sample is not None or options.seed is not None:
        sample = {sampled.key for sampled in _drawn(options, answers)}
        strange = [at for at, key in enumerate(sheet.keys) if key not in sample]
        if strange:
            raise UsageError(
                f"{sheet.where(strange[0])}: expected the sample of --sample {options.sample or SAMPLE_SIZE} --seed "
                f"{options.seed or 0}, got another ({len(strange):,} of {len(sheet):,} rows are not in it): leave both "
                f"out to go on with this file, or name another with --csv"
            )
    sampled = [found[key] for key in sheet.keys]
    return LabelFile(sheet, [label for _, label in sampled]), sampled


def _hold(file: LabelFile, sample: Sequence[SampleEntry]) -> None:
    from ...terminal.label_dialogue import Screen, hold

    hold([label for _, label in sample], file, Screen(), str(file.path))


def _fill_in(sample: Sequence[SampleEntry]) -> str:
    from ....bench.evaluation.labelling.label import choices_of, explained

    choices = explained(choices_of(label for _, label in sample))
    return f"fill in `label` with {choices}, leave blank what is not labelled"


def _told(file: LabelFile, compared: Mapping[str, LabelAgreement]) -> str:
    parts = [f"{file.path}: {file.labelled:,} of {len(file):,} answers are labelled"]
    parts.append(table([_COLUMNS, *((reading, *_cells(of.whole)) for reading, of in compared.items())]))
    for reading, of in compared.items():
        if len(of.models) > 1:
            parts.append(
                table([(f"{reading}, by model", *_COLUMNS[1:]), *((name, *_cells(a)) for name, a in of.models.items())])
            )
        parts.append(_confusion(reading, of.whole))
    if any(one.kappa is None for of in compared.values() for one in (of.whole, *of.models.values())):
        parts.append("kappa is undefined where labels and reading have one and the same letter throughout")
    return "\n\n".join(parts)


def _cells(found: Agreement) -> tuple[str, ...]:
    """Returns the table cells of an agreement: counts, share and kappa with intervals; `-` where one is undefined."""
    if found.share is None or found.share_interval is None:
        return ("0", "0", "-", "-", "-", "-")
    low, high = (f"{100 * limit:.1f}" for limit in found.share_interval)
    told = [f"{found.count:,}", f"{found.agreed:,}", f"{100 * found.share:.1f}%", f"{low} to {high}%"]
    if found.kappa is None or found.kappa_interval is None:
        return (*told, "undefined", "-")
    low, high = (f"{limit:.3f}" for limit in found.kappa_interval)
    return (*told, f"{found.kappa:.3f}", f"{low} to {high}")


def _confusion(reading: str, found: Agreement) -> str:
    rows = [(f"label \\ {reading}", *found.labels)]
    rows += [(label, *map(str, row)) for label, row in zip(found.labels, found.table, strict=True)]
    return table(rows)


def _as_json(folder: Path, file: LabelFile, compared: Mapping[str, LabelAgreement]) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "file": str(file.path),
        "sample": len(file),
        "labelled": file.labelled,
        "readings": {
            reading: {**_numbers(of.whole), "models": {name: _numbers(one) for name, one in of.models.items()}}
            for reading, of in compared.items()
        },
    }


def _numbers(found: Agreement) -> dict[str, Any]:
    confusion = {
        label: dict(zip(found.labels, row, strict=True)) for label, row in zip(found.labels, found.table, strict=True)
    }
    return {
        "labelled": found.count,
        "agree": found.agreed,
        "share": found.share,
        "share_ci95": [None, None] if found.share_interval is None else list(found.share_interval),
        "kappa": found.kappa,
        "kappa_ci95": [None, None] if found.kappa_interval is None else list(found.kappa_interval),
        "confusion": confusion,
    }
