"""The file labels.jsonl of a run: a line with a checksum for each label that a person gave or took back.

Owns the fields of a line. Of the lines about one answer by one rater the last counts. Several processes may append at
the same time. Draws no sample.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ....configuration.errors import UsageError
from ....engine.fault import DamagedJournal
from ....engine.runs.journal import append_at_once, is_intact, read_lines
from ....engine.runs.pairs import pair_of
from .sample import Key

LABELS = "labels.jsonl"
DEFAULT_RATER = "rater"


class LabelLine(Struct, frozen=True, kw_only=True):
    """A line of labels.jsonl: what one person said about one answer, and when."""

    model: str
    """The model that answered."""
    temperature: float | None
    """The temperature that was sent to it; None: none was."""
    effort: str | None = None
    """The reasoning effort that was sent to it; None: none was."""
    id: str
    """The id of the record."""
    rater: str
    """The name of the person."""
    label: str | None
    """The label's name; None: the person took the label back."""
    certainty: float | None = None
    """The certainty that the person gave, from 0 to 1; None: not given."""
    labelled_at: str
    """The time, in UTC and ISO 8601."""
    text_sha256: str
    """The SHA-256, in hex, of the text that was labelled."""
    sample: int
    """The size of the sample that was asked for."""
    seed: int
    """The seed of the sample."""

    @property
    def key(self) -> Key:
        return Key(pair_of(self), self.id)


def default_rater() -> str:
    """Returns the user's login name; `rater` if there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return DEFAULT_RATER


def time_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def append_lines(path: Path, lines: Iterable[LabelLine]) -> None:
    """Appends lines; they are on disk when this returns. Raises LocalFault, with nothing appended, if they can't be
    written."""
    append_at_once(path, [msgspec.json.encode(line) for line in lines])


def read_label_lines(path: Path) -> Iterator[LabelLine]:
    """Yields every whole line of the file; a missing file has none, and half a line at the end is skipped. Raises
    DamagedJournal for a line with a wrong checksum, UsageError for one that is no label."""
    decode = msgspec.json.Decoder(LabelLine).decode
    for number, line in enumerate(read_lines(path), 1):
        if not is_intact(line, must_be_sealed=False):
            raise DamagedJournal(f"{path} line {number} is damaged: restore the file, or remove this line")
        try:
            yield decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise UsageError(f"{path} line {number}: expected a label, got what is none ({error}): mend it") from error


def labels_that_count(lines: Iterable[LabelLine]) -> list[LabelLine]:
    """Returns the last line of each rater about each answer, without those that take a label back; in the order in
    which they were written."""
    last: dict[tuple[Key, str], LabelLine] = {}
    for line in lines:
        # Removed first, so that a label that is given anew takes its place at the end.
        last.pop((line.key, line.rater), None)
        last[line.key, line.rater] = line
    return [line for line in last.values() if line.label is not None]


def last_sample(lines: Sequence[LabelLine]) -> tuple[int, int] | None:
    """Returns size and seed of the sample that was labelled last; None if nothing was."""
    return (lines[-1].sample, lines[-1].seed) if lines else None
