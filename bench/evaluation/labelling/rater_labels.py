"""The labels of one person for a sample, kept in labels.jsonl, as a dialogue or a sheet gives them.

Shows nothing of other people's labels. Knows no screen and no CSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from .label import text_hash
from .label_lines import LabelLine, append_lines, time_now
from .sample import Key, SampleEntry


class GivenLabel(Struct, frozen=True):
    """A label that a person gave."""

    name: str
    """The name of the choice."""
    certainty: float | None = None
    """How certain the person is, from 0 to 1; None: not given."""


class RaterLabels:
    """One rater's labels of a sample. Each is on disk before `set_label` returns. `lines` are those labels of the file
    that count; labels of texts that have changed since are missing here, and are asked for again."""

    def __init__(
        self, path: Path, rater: str, sample: Sequence[SampleEntry], asked: tuple[int, int], lines: Iterable[LabelLine]
    ) -> None:
        self.path = path
        self.rater = rater
        self._sample = sample
        self.asked = asked
        own = {line.key: line for line in lines if line.rater == rater}
        self._given = [_current(own.get(entry.key), entry) for entry in sample]

    def __len__(self) -> int:
        return len(self._sample)

    def __repr__(self) -> str:
        return f"<RaterLabels of {self.rater} [Sample: {len(self)}, Labelled: {self.labelled}]>"

    @property
    def labelled(self) -> int:
        return sum(given is not None for given in self._given)

    @property
    def given(self) -> dict[Key, GivenLabel]:
        """The labels by answer."""
        return {entry.key: given for entry, given in zip(self._sample, self._given, strict=True) if given is not None}

    def label(self, at: int) -> GivenLabel | None:
        """Returns the label of answer `at`, from 0; None: not labelled."""
        return self._given[at]

    def set_label(self, at: int, given: GivenLabel | None) -> None:
        """Sets the label of answer `at`, from 0, or takes it back (None)."""
        append_lines(self.path, [self._line(at, given)])
        self._given[at] = given

    def set_labels(self, given: Sequence[GivenLabel | None]) -> int:
        """Sets the labels that differ from those on disk, and returns how many did. None changes nothing."""
        changed = [at for at, one in enumerate(given) if one is not None and one != self._given[at]]
        if changed:
            append_lines(self.path, [self._line(at, given[at]) for at in changed])
            for at in changed:
                self._given[at] = given[at]
        return len(changed)

    def _line(self, at: int, given: GivenLabel | None) -> LabelLine:
        key, label = self._sample[at]
        size, seed = self.asked
        return LabelLine(
            model=key.pair.model,
            temperature=key.pair.temperature,
            effort=key.pair.effort,
            id=key.id,
            rater=self.rater,
            label=None if given is None else given.name,
            certainty=None if given is None else given.certainty,
            labelled_at=time_now(),
            text_sha256=text_hash(label),
            sample=size,
            seed=seed,
        )


class UsableLabels(Struct, frozen=True):
    """The labels of a file that hold for the answers as they are now, by rater and answer, and how many do not."""

    raters: dict[str, dict[Key, GivenLabel]]
    """The labels by rater, in order of the raters' names."""
    entries: dict[Key, SampleEntry]
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


def usable_labels(lines: Iterable[LabelLine], entries: dict[Key, SampleEntry]) -> UsableLabels:
    """Returns the labels that hold for these answers. `lines` are the labels of a file that count."""
    raters: dict[str, dict[Key, GivenLabel]] = {}
    missing = changed = unknown = 0
    for line in lines:
        entry = entries.get(line.key)
        if entry is None:
            missing += 1
        elif line.text_sha256 != text_hash(entry.label):
            changed += 1
        elif line.label not in {choice.name for choice in entry.label.choices}:
            unknown += 1
        else:
            raters.setdefault(line.rater, {})[line.key] = GivenLabel(str(line.label), line.certainty)
    return UsableLabels(dict(sorted(raters.items())), entries, missing, changed, unknown)


def _current(line: LabelLine | None, entry: SampleEntry) -> GivenLabel | None:
    if line is None or line.text_sha256 != text_hash(entry.label):
        return None
    names = {choice.name for choice in entry.label.choices}
    return GivenLabel(str(line.label), line.certainty) if line.label in names else None
