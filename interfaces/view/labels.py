"""People's labels of a run's answers, given in the browser: the sample and the file of `millstream review`.

A label is on disk before it is confirmed. Shows neither the model nor any reading of an answer. Several people, and
`review` at a terminal, may label at the same time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...bench.evaluation.door.kept_answer import Verdict, text_hash, unique_name
from ...bench.evaluation.door.registry import benchmark_of
from ...bench.evaluation.reading.answers import answers_in
from ...bench.evaluation.reading.labelling.label_lines import (
    LABELS,
    RaterLabels,
    labels_that_count,
    last_sample,
    read_label_lines,
)
from ...bench.evaluation.reading.labelling.sample import SampleEntry
from ...configuration.errors import UsageError
from ...engine.runs.run_folder import read_manifest
from ...report.escaping import visible

SAMPLE = (500, 0)
RATER_MAX = 100


class LabelSheets:
    """The samples of all runs that are labelled here. A sample is drawn once: answers that come later are in none."""

    def __init__(self) -> None:
        self._samples: dict[tuple[Path, str, int, int], list[SampleEntry]] = {}

    def question(self, folder: Path, rater: str, at: int | None, after: int | None) -> dict[str, Any]:
        """Returns the question about one answer of the sample, and the rater's label if there is one. `at` None: the
        first without a label after the answer `after`, or after the last that has one."""
        labels, sample = self._labels(folder, rater)
        done = [labels.label(number) is not None for number in range(len(sample))]
        begin = after + 1 if after is not None else len(done) - done[::-1].index(True) if True in done else 0
        order = (*range(begin, len(done)), *range(min(begin, len(done))))
        at = next((number for number in order if not done[number]), None) if at is None else at
        head = {"of": len(sample), "labelled": labels.labelled, "at": at}
        if at is None or not 0 <= at < len(sample):
            return {**head, "at": None}
        one, label = sample[at].label, labels.label(at)
        return {
            **head,
            "mark": _mark(sample[at]),
            "about": {visible(name): visible(text) for name, text in one.about.items()},
            "history": [[visible(each.question), visible(each.text)] for each in one.history],
            "question": visible(one.question),
            "text": visible(one.text),
            "ask": one.ask,
            "choices": [[each.letter, each.name, each.words] for each in one.choices],
            "certainties": [[each.digit, each.name, each.value] for each in one.certainties],
            "label": None if label is None else label.label,
        }

    def set_label(self, folder: Path, rater: str, wanted: Any) -> dict[str, Any]:
        """Sets the label of an answer, or takes it back (None), and returns how many are labelled. Raises UsageError if
        it is none of the choices, or the sample is another by now."""
        labels, sample = self._labels(folder, rater)
        at, name, certainty = wanted.get("at"), wanted.get("label"), wanted.get("certainty")
        if type(at) is not int or not 0 <= at < len(sample) or wanted.get("mark") != _mark(sample[at]):
            raise UsageError("the sample has changed since this answer was shown: load the page again")
        one = sample[at].label
        if name is not None and not one.offers(name):
            raise UsageError(f"expected one of the labels of this answer, got {name!r:.40}")
        if certainty is not None and certainty not in [each.value for each in one.certainties]:
            raise UsageError(f"expected a step of certainty of this answer, got {certainty!r:.40}")
        labels.set_label(at, None if name is None else Verdict(name, confidence=certainty))
        return {"labelled": labels.labelled, "of": len(sample)}

    def _labels(self, folder: Path, rater: str) -> tuple[RaterLabels, list[SampleEntry]]:
        if not (rater := rater.strip()) or len(rater) > RATER_MAX or not rater.isprintable():
            raise UsageError(f"expected a name of 1 to {RATER_MAX} characters for the person who labels")
        lines = list(read_label_lines(folder / LABELS))
        size, seed = last_sample(lines) or SAMPLE
        manifest = read_manifest(folder)
        # Another run may stand in the folder by now.
        drawn = folder, str(manifest.get("run_id")), size, seed
        sample = self._samples.get(drawn)
        if sample is None:
            answers = answers_in(folder, benchmark_of(folder), manifest, is_shown=True)
            sample = self._samples[drawn] = answers.draw(size, seed)
        return RaterLabels(folder / LABELS, rater, sample, (size, seed), labels_that_count(lines)), sample


def _mark(entry: SampleEntry) -> str:
    """Returns what tells one answer, with its text, from any other, and says nothing about it."""
    return text_hash(f"{unique_name(entry.key)}\n{entry.label.text}")
