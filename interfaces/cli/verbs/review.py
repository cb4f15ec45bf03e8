"""`millstream review`: people label a sample of a run's answers, and see how far they agree with our readings.

At a terminal it asks. With --csv it writes a file to be filled in, and reads it again. Every label is kept in
labels.jsonl.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError
from ....format import count_text
from ...terminal.output import note, say, say_json

if TYPE_CHECKING:
    from ....bench.evaluation.reading.labelling.label_lines import LabelLine, RaterLabels
    from ....bench.evaluation.reading.labelling.sample import AnswerFile, SampleEntry

HELP = "label a sample of a run's answers, and see how far people and readings agree"
EXAMPLES = (
    "review runs/first",
    "review runs/first --sample 100 --csv labels.csv",
)
SAMPLE_SIZE = 500


class _Seed(values.WholeNumber, frozen=True):
    @property
    def expected(self) -> str:
        return f"a seed: a whole number from {self.least} to {self.most}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder, or another that holds a records.jsonl")
    parser.add_argument(
        "--sample",
        type=flag(values.WholeNumber("answers", 1, 100_000)),
        metavar="N",
        help="answers to draw, spread evenly over models, temperatures and the labels that the run gave them (default: "
        f"the last sample's number, else {SAMPLE_SIZE})",
    )
    parser.add_argument(
        "--seed",
        type=flag(_Seed("", 0, 10**9)),
        metavar="S",
        help="another seed draws another sample (default: the last's, else 0)",
    )
    parser.add_argument(
        "--rater",
        type=flag(values.Text("a name")),
        metavar="NAME",
        help="the name of the person who labels (default: the login name)",
    )
    parser.add_argument(
        "--csv",
        type=flag(values.Text("a file")),
        metavar="FILE",
        help="write the sample to FILE for this person, or read the labels in it",
    )
    parser.add_argument("--json", action="store_true", help="the agreement as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from ....bench.evaluation.reading.agreement_text import labels_json, labels_text
    from ....bench.evaluation.reading.labelling.comparison import compared_in
    from ....bench.evaluation.reading.labelling.label_file import fill_in
    from ....bench.evaluation.reading.labelling.label_lines import LABELS, default_rater, read_label_lines
    from ...terminal.label_dialogue import Screen, hold

    folder = Path(options.folder)
    sheet = None if options.csv is None else Path(options.csv)
    is_new = sheet is not None and not sheet.exists()
    is_dialogue = sheet is None and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    answers = _answers_of(folder, is_shown=is_new or is_dialogue)
    lines = list(read_label_lines(folder / LABELS))
    labels, sample = _begun(folder, options.rater or default_rater(), lines, options, answers)
    if is_dialogue:
        hold([label for _, label in sample], labels, Screen(), f"{labels.path} for {labels.rater}")
    elif sheet is not None:
        _exchange(sheet, sample, labels, is_new=is_new)
    if (is_dialogue or is_new) and len(sample) < labels.asked[0]:
        note(f"millstream: {labels.asked[0]:,} answers asked for, {len(sample):,} are there: the sample is all of them")
    place = labels.path if sheet is None else sheet
    compared = compared_in(labels.path, answers)
    for remark in compared.remarks:
        note(f"millstream: {labels.path}: {remark}")
    if options.json:
        say_json(labels_json(folder, place, labels, compared))
    elif is_new:
        written = f"{count_text(len(sample), 'answer')} {'is' if len(sample) == 1 else 'are'} written"
        say(
            f"{place}: {written}: {fill_in(sample)}; then the same command tells the agreement. A ' in front of a cell "
            f"keeps a spreadsheet from computing it."
        )
    elif compared.raters:
        say(labels_text(place, labels, compared))
    elif sheet is not None:
        say(f"{place}: none of {len(sample):,} answers is labelled yet: {fill_in(sample)}")
    else:
        say(f"{place}: no answer is labelled yet: run this at a terminal, or write a sheet with --csv FILE")
    return DONE


def _answers_of(folder: Path, *, is_shown: bool) -> AnswerFile:
    """Returns the answers of a run, or of another program's records, with their benchmark's questions about them."""
    from ....bench.evaluation.door.registry import benchmark_of
    from ....bench.evaluation.reading.answers import answers_in
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
    return answers_in(folder, benchmark_of(folder), manifest, is_shown=is_shown, has_judges=True)


def _begun(
    folder: Path, rater: str, lines: Sequence[LabelLine], options: argparse.Namespace, answers: AnswerFile
) -> tuple[RaterLabels, Sequence[SampleEntry]]:
    """Returns the rater's labels so far and the sample: that of the sheet if it exists, else a drawn one."""
    from ....bench.evaluation.reading.labelling.label_lines import LABELS, RaterLabels, labels_that_count, last_sample

    size_and_seed = last_sample(lines) or (SAMPLE_SIZE, 0)
    if options.sample is not None or options.seed is not None:
        size_and_seed = (options.sample or SAMPLE_SIZE, options.seed or 0)
    if options.csv is not None and Path(options.csv).exists():
        sample = _in_sheet(folder, Path(options.csv), options, answers)
    else:
        sample = answers.draw(*size_and_seed)
        if not sample:
            raise UsageError(f"{folder}: expected answers with a text in its records, got none: nothing to label")
    return RaterLabels(folder / LABELS, rater, sample, size_and_seed, labels_that_count(lines)), sample


def _in_sheet(folder: Path, path: Path, options: argparse.Namespace, answers: AnswerFile) -> list[SampleEntry]:
    """Returns the sample of an existing sheet. Raises UsageError for options that ask for another sample."""
    from ....bench.evaluation.reading.labelling.label_file import read

    sheet = read(path)
    entries = answers.find(sheet.keys)
    unknown = [at for at, key in enumerate(sheet.keys) if key not in entries]
    if unknown:
        raise UsageError(
            f"{sheet.where(unknown[0])}: expected an answer of {folder}, got {sheet.keys[unknown[0]]} "
            f"({len(unknown):,} of {len(sheet):,} rows are of no answer there): is it a sample of another run?"
        )
    if options.sample is not None or options.seed is not None:
        size, seed = options.sample or SAMPLE_SIZE, options.seed or 0
        sample = {sampled.key for sampled in answers.draw(size, seed)}
        strange = [at for at, key in enumerate(sheet.keys) if key not in sample]
        if strange:
            raise UsageError(
                f"{sheet.where(strange[0])}: expected the sample of --sample {size} --seed {seed}, got another "
                f"({len(strange):,} of {len(sheet):,} rows are not in it): leave both out to go on with this file, or "
                f"name another with --csv"
            )
    return [entries[key] for key in sheet.keys]


def _exchange(path: Path, sample: Sequence[SampleEntry], labels: RaterLabels, *, is_new: bool) -> None:
    """Writes a new sheet with the labels so far, or takes the labels of an existing one."""
    from ....bench.evaluation.reading.labelling.label_file import begin, changed_in, labels_in, read

    if is_new:
        begin(path, sample, labels.by_key)
        return
    sheet, questions = read(path), [label for _, label in sample]
    labels.set_labels(labels_in(sheet, questions))
    if changed := changed_in(sheet, questions):
        note(
            f"millstream: {path}: {changed:,} labelled rows are left out: the texts of their answers have changed since"
        )
