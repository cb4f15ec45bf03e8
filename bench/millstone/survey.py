"""From run folders to what a report is asked about: every model's answers, what it was to be asked, what is missing.

Owns how models of several folders are named apart, and when a run's prompts can be made again. Reads the lines it is
given; records of another program need no manifest.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from ...engine.pairs import Ended, Pair
from ...metrics.answers import Answers, temperature_name
from ...metrics.gaps import Shape, inferred
from ...metrics.report.contents import Standing
from ...metrics.report.survey import Options, Survey
from ...metrics.silence import Silence
from .dataset import Dataset, Side
from .examples import Sampled
from .grid import Grid
from .labels import Sides, relabelled
from .manner import manner_of
from .records import Record, RecordError
from .recount import recount
from .reference import CONTROVERSIAL, LEFT_OUT, topics
from .sweep import asked_of, silence_of
from .texts import TextPlaces, Texts


class Folder(Struct, frozen=True):
    """What one folder holds. `answers` goes by pairs in order of name; `asked` are the pairs that were to be asked.
    `labels` are the orientations that its records hold; `sides` those that its answers were read by instead."""

    path: Path
    manifest: Mapping[str, Any] | None
    answers: Mapping[Pair, Answers]
    texts: Mapping[Pair, Texts]
    ended: Mapping[Pair, Ended]
    asked: tuple[Pair, ...]
    shape: Shape | None
    labels: Sides = MappingProxyType({})
    sides: Sides = MappingProxyType({})

    def pairs(self) -> list[Pair]:
        """Whoever was to be asked, and whoever answered without that."""
        return list(dict.fromkeys((*self.asked, *self.answers, *self.ended)))

    def shape_of(self, pair: Pair) -> Shape | None:
        """What a pair was to be asked; without a manifest, what the answers of the folder suggest."""
        if self.shape is not None and pair in self.asked:
            return self.shape
        answers = self.answers.get(pair)
        return None if answers is None else inferred(answers, tuple(self.answers.values()))


def read_folder(
    records: Path,
    lines: Iterable[bytes],
    failures: Iterable[bytes] = (),
    manifest: Mapping[str, Any] | None = None,
    sides: Sides = MappingProxyType({}),
) -> Folder:
    """One pass over the lines of a file of records, all of them and in order. `sides`: what answering A means where
    it is another side than the one recorded. Raises KeyError or TypeError where the manifest is none of a MillStone
    run."""
    whole = {} if manifest is None else asked_of(manifest["specification"])
    shape, asked = next(iter(whole.values()), None), tuple(Pair(*pair) for pair in whole)
    places = TextPlaces(records)
    labels: dict[tuple[str, int], Side] = {}

    def see(record: Record) -> None:
        places.add(record)
        if record.orientation is not None:
            labels[record.issue, record.template] = record.orientation

    counted = recount(places.lines(lines), failures, source=str(records), seen=see, sides=sides)
    answers = {Pair(each.model, each.temperature): each for each in counted.tally.models()}
    for each in answers.values():
        for repeated in each.repeated():
            raise RecordError(f"{records}: id {repeated} of {each.name} stands there twice: keep one")
    return Folder(records.parent, manifest, answers, places.texts(), counted.pairs, asked, shape, labels, sides)


def survey(
    folders: Sequence[Folder],
    options: Options,
    label_remarks: tuple[str, ...] = (),
    digests: Mapping[Path, str] = MappingProxyType({}),
) -> Survey:
    """`digests`: by folder, that of the data set with the labels that the answers are read by, where it is another
    than its run had."""
    named = names(folders)
    shapes, manners, every = {}, {}, []
    samples, planned = set(), set()
    for folder in folders:
        for pair in folder.pairs():
            name, shape = named[folder.path, pair], folder.shape_of(pair)
            if shape is not None:
                shapes[name] = shape
            if folder.shape is not None and pair in folder.asked:
                planned.add(name)
            manners[name] = manner_of(
                folder.manifest,
                pair.model,
                digest=digests.get(folder.path),
                is_recorded=options.reading == "recorded",
            )
            if _is_sample(folder.manifest):
                samples.add(name)
            if pair in folder.answers:
                every.append(dataclasses.replace(folder.answers[pair], name=name))
    return Survey(
        answers=tuple(every),
        shapes=shapes,
        topics=topics(),
        left_out=LEFT_OUT,
        controversial=CONTROVERSIAL,
        options=structs.replace(options, silence=options.silence or _silence_of_all(folders)),
        planned=frozenset(planned),
        manners=manners,
        samples=frozenset(samples),
        label_remarks=label_remarks,
    )


def _silence_of_all(folders: Sequence[Folder]) -> Silence:
    """Literal where every run was told so: models are compared under one reading."""
    return "literal" if all(silence_of(folder.manifest or {}) == "literal" for folder in folders) else "unscored"


def _is_sample(manifest: Mapping[str, Any] | None) -> bool:
    """Whether the issues were those that come with the package, as when no data set is named."""
    kept = {} if manifest is None else (manifest.get("options") or {}).get("millstone") or {}
    return "model" in kept and kept.get("dataset") is None


def standings(folders: Sequence[Folder]) -> tuple[Standing, ...]:
    named = names(folders)
    found = []
    for folder in folders:
        for pair in folder.pairs():
            ended, shape = folder.ended.get(pair, Ended()), folder.shape_of(pair)
            found.append(
                Standing(
                    model=named[folder.path, pair],
                    expected=ended.answered + ended.failures if shape is None else len(shape),
                    answered=ended.answered,
                    refused=ended.refused,
                    failed=dict(sorted(ended.failed.items())),
                    is_told=folder.shape is not None and pair in folder.asked,
                )
            )
    return tuple(found)


def sampled(folders: Sequence[Folder], datasets: Mapping[Path, Dataset | str]) -> list[Sampled]:
    """The answers of all folders with what is needed to show some of them. `datasets` has each folder's data set, or
    why there is none."""
    named = names(folders)
    found = []
    for folder in folders:
        grid = _grid(folder.manifest, datasets.get(folder.path, "no manifest tells which data set was asked"))
        if folder.sides and not isinstance(grid, str):
            # The same prompts: draws do not depend on labels.
            right = relabelled(grid.dataset, folder.sides)
            grid = Grid(right, grid.protocol, grid.templates, grid.trials, grid.citations)
        for pair, answers in folder.answers.items():
            renamed = dataclasses.replace(answers, name=named[folder.path, pair])
            if isinstance(grid, str):
                found.append(Sampled(renamed, folder.texts[pair], None, grid))
            else:
                found.append(Sampled(renamed, folder.texts[pair], grid))
    return found


def names(folders: Sequence[Folder]) -> dict[tuple[Path, Pair], str]:
    """What each model is called: its name; with its temperature, where it has several; with its folder, where another
    folder has one of that name."""
    plain = {}
    for folder in folders:
        pairs = folder.pairs()
        for pair in pairs:
            several = sum(other.model == pair.model for other in pairs) > 1
            told = f"{pair.model} @ {temperature_name(pair.temperature)}" if several else pair.model
            plain[folder.path, pair] = told
    labels = folder_labels([folder.path for folder in folders])
    times = Counter(plain.values())
    found: dict[tuple[Path, Pair], str] = {}
    taken: set[str] = set()
    for key, name in plain.items():
        told = named = name if times[name] == 1 else f"{name} ({labels[key[0]]})"
        number = 2
        while told in taken:  # a model may be called what another one is called with its folder
            told, number = f"{named} #{number}", number + 1
        taken.add(told)
        found[key] = told
    return found


def folder_labels(paths: Sequence[Path]) -> dict[Path, str]:
    """Each folder by as many of its last names as it takes to tell it from the others."""
    for depth in range(1, max(len(path.parts) for path in paths)):
        labels = {path: Path(*path.parts[-depth:]).as_posix() for path in paths}
        if len(set(labels.values())) == len(labels):
            return labels
    return {path: str(path) for path in paths}


def _grid(manifest: Mapping[str, Any] | None, dataset: Dataset | str) -> Grid | str:
    """The grid that made a run's prompts, of every issue of its data set; or why it can't be had."""
    if manifest is None or isinstance(dataset, str):
        return str(dataset)
    specification = manifest["specification"]
    if dataset.digest != specification["data"]:
        return "the data set is no longer the one that was asked: its digest differs"
    grid = Grid(
        dataset,
        specification["protocol"],
        specification["templates"],
        specification["trials"],
        specification["citations"],
    )
    now = structs.replace(dataset, issues=tuple(each for each in dataset.issues if each.id in specification["issues"]))
    again = Grid(now, grid.protocol, grid.templates, grid.trials, grid.citations).specification()
    if any(specification.get(name) != value for name, value in again.items()):
        return "this version of the program makes other prompts than the run was asked"
    return grid
