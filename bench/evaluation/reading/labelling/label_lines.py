"""The file labels.jsonl of a run: a line with a checksum for each label that a person gave or took back.

Owns the fields of a line, and which lines count: of those about one answer by one rater the last, if it holds for the
answer as it is now. Several processes may append at the same time. Knows no screen, no CSV and no sample's draw.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from .....engine.runs.journal import append_at_once
from ...door.kept_answer import Key, Verdict, VerdictLine, text_hash, verdict_lines
from .sample import SampleEntry

LABELS = "labels.jsonl"
DEFAULT_RATER = "rater"


class LabelLine(VerdictLine, frozen=True, kw_only=True):
    """A line of labels.jsonl: what one person said about one answer, and when."""

    # These four without defaults: a line that lacks one is no label.
    id: str
    model: str
    temperature: float | None
    text_sha256: str
    rater: str
    """The name of the person."""
    label: str | None
    """The label's name; None: the person took the label back."""
    certainty: float | None = None
    """The certainty that the person gave, from 0 to 1; None: not given."""
    labelled_at: str
    """The time, in UTC and ISO 8601."""
    sample: int
    """The size of the sample that was asked for."""
    seed: int
    """The seed of the sample."""


def default_rater() -> str:
    """Returns the user's login name; `rater` if there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return DEFAULT_RATER


def read_label_lines(path: Path) -> Iterator[LabelLine]:
    return verdict_lines(path, LabelLine, "label")


def labels_that_count(lines: Iterable[LabelLine]) -> list[LabelLine]:
    """Returns the last line of each rater about each answer, without those that take a label back; in the order in
    which they were written."""
    last: dict[tuple[Key, str], LabelLine] = {}
    for line in lines:
        # Removed first, so that a label that is given anew takes its place at the end.
        last.pop((line.answer, line.rater), None)
        last[line.answer, line.rater] = line
    return [line for line in last.values() if line.label is not None]


def last_sample(lines: Sequence[LabelLine]) -> tuple[int, int] | None:
    """Returns size and seed of the sample that was labelled last; None if nothing was."""
    return (lines[-1].sample, lines[-1].seed) if lines else None


class UsableLabels(Struct, frozen=True):
    """The labels of a file that hold for the answers as they are now, by rater and answer, and how many do not."""

    raters: dict[str, dict[Key, Verdict]]
    """The labels by rater, in order of the raters' names."""
    entries: Mapping[Key, SampleEntry]
    """The labelled answers."""
    missing: int = 0
    """Labels of answers that the records do not hold."""
    changed: int = 0
    """Labels of answers whose text has changed since."""
    unknown: int = 0
    """Labels that are none of the choices."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """A sentence for each kind of label that is left out."""
        kinds = (
            (self.missing, "the records do not hold the answer"),
            (self.changed, "the text of the answer has changed since"),
            (self.unknown, "none of the labels that can be given"),
        )
        return tuple(
            f"{count:,} {'label is' if count == 1 else 'labels are'} left out: {why}" for count, why in kinds if count
        )


def usable_labels(lines: Iterable[LabelLine], entries: Mapping[Key, SampleEntry]) -> UsableLabels:
    """Returns the labels that hold for these answers. `lines` are the labels of a file that count."""
    raters: dict[str, dict[Key, Verdict]] = {}
    missing = changed = unknown = 0
    for line in lines:
        entry = entries.get(line.answer)
        if entry is None:
            missing += 1
        elif not line.holds_for(entry.label.text):
            changed += 1
        elif not entry.label.offers(line.label):
            unknown += 1
        else:
            raters.setdefault(line.rater, {})[line.answer] = Verdict(line.label, confidence=line.certainty)
    return UsableLabels(dict(sorted(raters.items())), entries, missing, changed, unknown)


class RaterLabels:
    """One rater's labels of a sample, by the answers' numbers from 0. Each is on disk before `set_label` returns.
    `lines` are those labels of the file that count; labels of texts that have changed since are missing here, and are
    asked for again. Shows nothing of other people's labels."""

    def __init__(
        self, path: Path, rater: str, sample: Sequence[SampleEntry], asked: tuple[int, int], lines: Iterable[LabelLine]
    ) -> None:
        self.path = path
        self.rater = rater
        self._sample = sample
        self.asked = asked
        held = usable_labels(lines, {entry.key: entry for entry in sample}).raters.get(rater, {})
        self._labels = [held.get(entry.key) for entry in sample]

    def __len__(self) -> int:
        return len(self._sample)

    def __repr__(self) -> str:
        return f"<RaterLabels of {self.rater} [Sample: {len(self)}, Labelled: {self.labelled}]>"

    @property
    def labelled(self) -> int:
        return len(self.by_key)

    @property
    def by_key(self) -> dict[Key, Verdict]:
        """The labels by answer."""
        return {entry.key: label for entry, label in zip(self._sample, self._labels, strict=True) if label is not None}

    def label(self, at: int) -> Verdict | None:
        """Returns the label of an answer; None: not labelled."""
        return self._labels[at]

    def set_label(self, at: int, label: Verdict | None) -> None:
        """Sets the label of an answer, or takes it back (None)."""
        self._set({at: label})

    def set_labels(self, labels: Sequence[Verdict | None]) -> int:
        """Sets the labels that differ from those on disk, and returns how many did. None changes nothing."""
        changed = {at: label for at, label in enumerate(labels) if label is not None and label != self._labels[at]}
        if changed:
            self._set(changed)
        return len(changed)

    def _set(self, labels: Mapping[int, Verdict | None]) -> None:
        append_at_once(self.path, [msgspec.json.encode(self._line(at, label)) for at, label in labels.items()])
        for at, label in labels.items():
            self._labels[at] = label

    def _line(self, at: int, label: Verdict | None) -> LabelLine:
        key, question = self._sample[at]
        size, seed = self.asked
        return LabelLine(
            **key.pair._asdict(),
            id=key.id,
            text_sha256=text_hash(question.text),
            rater=self.rater,
            label=None if label is None else label.label,
            certainty=None if label is None else label.confidence,
            labelled_at=datetime.now(UTC).isoformat(timespec="seconds"),
            sample=size,
            seed=seed,
        )
