"""`millstream review`: a person labels a sample of a run's answers, and is told how far our readings agree.

At a terminal it asks; elsewhere, or with --csv, it writes a file to be filled in and reads it again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import values
from ..options import flag
from ..output import note, say, say_json, table
from ..refusal import DONE, UsageError

if TYPE_CHECKING:
    from ...bench.millstone.review import Answer, Compared
    from ...metrics.agreement import Agreement
    from ...metrics.stance import Reading
    from ..label_file import LabelFile

    Questions = Mapping[tuple[str, int], str]

HELP = "label a sample of a run's answers, and see how far the readings agree"
LABELS_FILE = "review.csv"
SAMPLE_SIZE = 500
_COLUMNS = ("reading", "labelled", "agree", "share", "95% interval", "kappa", "95% interval")
_FILL_IN = "fill in `label` with A, B or O (another position, none or both), leave blank what is not labelled"


class _Seed(values.Whole):
    @property
    def expected(self) -> str:
        return f"a seed: a whole number from {self.least} to {self.most}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder, or another that holds a records.jsonl")
    parser.add_argument(
        "--sample",
        type=flag(values.Whole("answers", 1, 100_000)),
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
    from ...bench.millstone.review import compare

    folder = Path(options.folder)
    manifest = _manifest_of(folder)
    stance = None if manifest is None else manifest["specification"].get("stance")
    recorded: Reading | None = stance if stance in ("paper", "careful") else None
    path = folder / LABELS_FILE if options.csv is None else Path(options.csv)
    is_new = not path.exists()
    is_dialogue = options.csv is None and _is_at_a_terminal()
    questions = _questions(manifest) if is_new or is_dialogue else {}
    file, answers = _begun(folder, path, options, questions) if is_new else _read(folder, path, options)
    if is_dialogue:
        _hold(file, answers, questions)
    labels = [file.label(at) for at in range(len(file))]
    labelled = [(answer, label) for answer, label in zip(answers, labels, strict=True) if label is not None]
    compared = compare(labelled, recorded)
    if options.json:
        say_json(_as_json(folder, file, compared))
    elif labelled:
        say(_told(file, compared))
    elif is_new and not is_dialogue:
        say(
            f"{path}: {len(file):,} answers are written: {_FILL_IN}; then the same command tells the agreement. A ' in "
            f"front of a cell keeps a spreadsheet from computing it."
        )
    else:
        say(f"{path}: none of {len(file):,} answers is labelled yet: {_FILL_IN}")
    return DONE


def _manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest; None where another program wrote the records."""
    from ...engine.run_folder import MANIFEST, RECORDS
    from ..batch.place import refuse_batch
    from ..which import benchmark_of
    from .resume import manifest_of

    refuse_batch(folder)

    has_records, has_manifest = (folder / RECORDS).is_file(), (folder / MANIFEST).exists()
    if not has_records and not has_manifest and not any(folder.glob(f"*/{MANIFEST}")):
        raise UsageError(f"{folder}: expected a run's folder, or another that holds a {RECORDS}, got none there")
    if has_records and (benchmark := benchmark_of(folder)) != "millstone":
        raise UsageError(f"{folder}: expected a MillStone run, got one of {benchmark}: it has no letters to label")
    if not has_records or has_manifest:
        manifest = manifest_of(folder)
        if not has_records:
            raise UsageError(f"{folder}: expected a run with answers, got no {RECORDS}: nothing to label")
        return manifest
    return None


def _is_at_a_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _begun(
    folder: Path, path: Path, options: argparse.Namespace, questions: Questions
) -> tuple[LabelFile, list[Answer]]:
    """A new file of labels. Nothing is drawn before, and nothing written after, something is found to be wrong."""
    from ..label_file import begin

    drawn = _drawn(folder, options)
    if not drawn:
        raise UsageError(f"{folder}: expected answers with a text in its records, got none: nothing to label")
    file = begin(path, drawn, questions)
    asked = options.sample or SAMPLE_SIZE
    if len(drawn) < asked:
        note(f"millstream: {asked:,} answers asked for, {len(drawn):,} are there: the sample is all of them")
    return file, drawn


def _drawn(folder: Path, options: argparse.Namespace) -> list[Answer]:
    from ...bench.millstone.review import answers_of, draw
    from ...engine.run_folder import RECORDS

    try:
        return draw(answers_of(folder / RECORDS), options.sample or SAMPLE_SIZE, options.seed or 0)
    except OSError as error:
        raise UsageError(f"{folder / RECORDS}: expected a readable file, got: {error.strerror}") from error


def _read(folder: Path, path: Path, options: argparse.Namespace) -> tuple[LabelFile, list[Answer]]:
    """A file that is there already: it says what the sample is, unless it is asked for besides."""
    from ...bench.millstone.review import answers_of, find
    from ...engine.run_folder import RECORDS
    from ..label_file import read

    file = read(path)
    try:
        found = find(answers_of(folder / RECORDS), file.keys)
    except OSError as error:
        raise UsageError(f"{folder / RECORDS}: expected a readable file, got: {error.strerror}") from error
    unknown = [at for at, key in enumerate(file.keys) if key not in found]
    if unknown:
        raise UsageError(
            f"{file.where(unknown[0])}: expected an answer of {folder}, got {file.keys[unknown[0]]} "
            f"({len(unknown):,} of {len(file):,} rows are of no answer there): is it a sample of another run?"
        )
    if options.sample is not None or options.seed is not None:
        sample = {answer.key for answer in _drawn(folder, options)}
        strange = [at for at, key in enumerate(file.keys) if key not in sample]
        if strange:
            raise UsageError(
                f"{file.where(strange[0])}: expected the sample of --sample {options.sample or SAMPLE_SIZE} --seed "
                f"{options.seed or 0}, got another ({len(strange):,} of {len(file):,} rows are not in it): leave both "
                f"out to go on with this file, or name another with --csv"
            )
    return file, [found[key] for key in file.keys]


def _questions(manifest: Mapping[str, Any] | None) -> Questions:
    """The wordings that were asked, where the data set still is what it was."""
    from ...bench.millstone.dataset import DatasetError, load
    from ...bench.millstone.review import questions_of
    from ..millstone_work import SAMPLE

    if manifest is None:
        return {}
    try:
        kept = manifest["options"]["millstone"]["dataset"]
        path = SAMPLE if kept is None else Path(kept)
    except (KeyError, TypeError):
        note("millstream: the manifest names no data set: the answers are shown without their questions")
        return {}
    try:
        dataset = load(path)
        if dataset.digest == manifest["specification"].get("data"):
            return questions_of(dataset)
        why = "has changed since the run"
    except (DatasetError, OSError):
        why = "can't be read"
    note(f"millstream: the data set {path} {why}: the answers are shown without their questions")
    return {}


def _hold(file: LabelFile, answers: Sequence[Answer], questions: Questions) -> None:
    from ..labelling import Screen, Shown, hold

    shown = [
        Shown(answer.issue, questions.get((answer.issue, answer.template), ""), answer.text or "") for answer in answers
    ]
    hold(shown, file, Screen(), str(file.path))


def _told(file: LabelFile, compared: Mapping[str, Compared]) -> str:
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
    """Of something labelled; kappa may be undefined."""
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


def _as_json(folder: Path, file: LabelFile, compared: Mapping[str, Compared]) -> dict[str, Any]:
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
