"""Items by models: one run's records as numbers in columns, and the two objects that a page reads of several runs.

`columns` has a number of each kind for every cell, `details` all texts of one item. The report holds both in its page,
the live page asks the server for them. Keeps no answer: the lines of an item are read again.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from ....engine.fault import LocalFault
from ....engine.folder_file import line_at, lines_in, open_to_read
from ....engine.pairs import Pair
from ....engine.runs.run_folder import FAILURES, RECORDS
from ....report.escaping import visible
from ..door.item_reader import BEGINNING, ItemReader, brief, text_of
from ..door.kept_images import IMAGES, KeptImage
from ..door.served_rows import ONE_ROW_EACH, ServedRows
from ..running.journals import RecordError, decoded
from .cell_figures import commonest, differs, listed, means, paths, sums

# Answers whose beginnings stand for a label: more would make the page large.
_LABELS_MOST = 20_000
# An image is shown if it is at most so many times longer than the longest text.
_IMAGE_CHARS = 30
_OK, _CUT, _NAN = "ok", "cut off", float("nan")


class ReadPart:
    """The part of a file that was read: how many bytes, and their hash."""

    def __init__(self) -> None:
        self.size = 0
        # The fastest of hashlib's here, twice as fast as BLAKE2: a processor has instructions for it.
        self._hash = hashlib.sha256()

    def __repr__(self) -> str:
        return f"<ReadPart [{self.size:,} bytes]>"

    def add(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        self._hash.update(data)

    def digest(self) -> bytes:
        return self._hash.digest()


class RunItems:
    """The lines of one run, each as a row of numbers."""

    def __init__(
        self, path: Path, reader: ItemReader, rows: ServedRows = ONE_ROW_EACH, pairs: Iterable[Pair] = ()
    ) -> None:
        self.path = path
        self.reader = reader
        self.rows = rows
        self.items: dict[str, int] = {}
        self.groups: list[str] = []
        self.titles: list[str] = []
        self.expected: list[str] = []
        self.pairs = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
        self.labels: dict[str, int] = {"": 0}
        self.statuses: dict[str, int] = {_OK: 0}
        # Hashes of the items' rows in the data, since two files may give different rows one id; 0: not known.
        self.row_hashes = array("q")
        # Of each line the numbers of its item, pair, label and status, and its length; the byte at which it begins; and
        # its score, cost and tokens.
        self._whole, self._places, self._parts = array("i"), array("q"), array("d")
        # The number of each line's turn; empty if the lines are no turns.
        self.turns = array("i")
        self._pairs: dict[tuple[Any, ...], int] = {}
        # The lines in the order of their items, and where those of each item begin; made when an item is opened.
        self._by_item = self._begins = np.zeros(0, np.int64)
        self.read = {RECORDS: ReadPart(), FAILURES: ReadPart()}
        # So many lines are kept beside the cache.
        self.kept = 0

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<RunItems [{len(self):,} lines of {len(self.items):,} items and {len(self.pairs):,} models]>"

    def reading(self, lines: Iterable[bytes], name: str, *, is_failure: bool = False) -> Iterator[bytes]:
        """Yields the lines of a file, with the rows' models, and adds each on the way. Raises RecordError for a line
        that is none."""
        decode, part = msgspec.json.Decoder(self.reader.Line).decode, self.read[FAILURES if is_failure else RECORDS]
        for number, written in enumerate(lines, 1):
            place = part.size
            part.add(written + b"\n")
            if (line := self.rows.line(written)) and not line.isspace():
                try:
                    self.add(decode(line), place, is_failure=is_failure)
                except (msgspec.MsgspecError, UnicodeError) as error:
                    raise RecordError(f"{name}: line {number}: {error}") from error
                yield line

    def add(self, line: Any, place: int, *, is_failure: bool = False) -> None:
        """Adds a line that was decoded as the reader's `Line`. `place`: the byte at which it begins in the file of
        records, or of failures."""
        reader = self.reader
        item = self.items.get(name := reader.item(line))
        if item is None:
            item = self._begin(name, line)
        score, text = reader.score(line), line.text or ""
        tokens = None if line.usage is None else line.usage.both
        label = reader.label(line)
        if not label and len(self.labels) < _LABELS_MOST:
            label = text if text in self.labels else visible(brief(text, BEGINNING))
        status = _CUT if line.truncated and line.status == _OK else line.status
        pair = self._pairs.get(key := (line.model, line.temperature, line.effort))
        if pair is None:
            pair = self._pairs[key] = self.pairs.setdefault(line.pair, len(self.pairs))
        labels, statuses = self.labels, self.statuses
        # A failure's place is below zero, since it stands in a file of its own.
        place = ~place if is_failure else place
        which = labels.setdefault(label, len(labels)), statuses.setdefault(status, len(statuses))
        self._whole.extend((item, pair, *which, len(text)))
        self._places.append(place)
        if reader.answers_are == "turn":
            self.turns.append(reader.number(line) or 0)
        for part in (score, line.cost, tokens):
            self._parts.append(_NAN if part is None else part)

    def _begin(self, name: str, line: Any) -> int:
        """Notes an item of which this is the first line, and returns its number."""
        reader, row = self.reader, self.reader.row(line)
        self.row_hashes.append(_row_hash(row) if row else 0)
        self.groups.append(visible(reader.group(line)))
        self.titles.append(visible(reader.title(line)))
        self.expected.append(visible(brief(reader.expected(row), BEGINNING)))
        return self.items.setdefault(name, len(self.items))

    @cached_property
    def images(self) -> dict[str, str]:
        """The images of the prompts that the run kept, by their descriptions in the records."""
        try:
            lines = lines_in(self.path / IMAGES)
            return {image.text: image.url for image in decoded(lines, KeptImage, IMAGES)}
        except (OSError, LocalFault, RecordError):  # prompts are shown without them
            return {}

    @property
    def arrays(self) -> list[array[Any]]:
        return [self.row_hashes, self._whole, self._places, self._parts, self.turns]

    def whole(self) -> NDArray[np.int32]:
        """Returns of each line the numbers of item, pair, label and status, and its length. No line can be added as
        long as somebody holds it."""
        return np.asarray(self._whole).reshape(-1, 5)

    def parts(self) -> NDArray[np.float64]:
        """Returns the score, the cost and the tokens of each line, NaN where it has none; as `whole` does."""
        return np.asarray(self._parts).reshape(-1, 3)

    def records_of(self, at: int) -> Iterator[Any]:
        """Yields the records of the item of this number, answers and failures, read again from the files."""
        if len(self._by_item) != len(self):
            item = self.whole()[:, 0]
            self._by_item = np.argsort(item, kind="stable")
            self._begins = np.concatenate(([0], np.bincount(item).cumsum()))
        lines = self._by_item[self._begins[at] : self._begins[at + 1]].tolist()
        places = [self._places[each] for each in lines]
        decode = msgspec.json.Decoder(self.reader.Record).decode
        for file_name, begins in (
            (RECORDS, [each for each in places if each >= 0]),
            (FAILURES, [~each for each in places if each < 0]),
        ):
            if not begins:
                continue
            with open_to_read(path := self.path / file_name) as file:
                try:
                    yield from map(decode, self.rows.lines(line_at(file, place) for place in begins))
                except (msgspec.MsgspecError, UnicodeError) as error:
                    raise RecordError(f"{path} changed while it was read: ask again once its run has ended") from error


class SharedItems:
    """The items and models of several runs. `names` has the name of each run where there are several, for the names of
    their models."""

    def __init__(self, runs: Sequence[RunItems], names: Mapping[Path, str]) -> None:
        self.runs = runs
        self.names = names
        self._numbers = _numbers_of(runs, names)
        there = dict.fromkeys(name for numbers in self._numbers for name in numbers)
        in_data = dict.fromkeys(name for run in runs for name in run.reader.order() if name in there)
        self.items = {name: at for at, name in enumerate(in_data | there)}
        self.is_in_order = bool(there) and len(in_data) == len(there)
        self.models = [(run, pair) for run in runs for pair in run.pairs]

    def details(self, name: str, longest: int = 200_000) -> dict[str, Any]:
        """Returns the object that the page shows of one item: what was asked, the right answer, and each model's
        answers. A longer text is cut at `longest` characters."""
        answers: list[dict[str, Any]] = []
        row: Mapping[str, Any] = {}
        expected, at = "", 0
        for run, numbers in zip(self.runs, self._numbers, strict=True):
            of_pair: dict[Pair, list[Any]] = {}
            for record in run.records_of(numbers[name]) if name in numbers else ():
                row = row or {column: text_of(value) for column, value in run.reader.row(record).items()}
                expected = expected or run.reader.expected(run.reader.row(record))
                of_pair.setdefault(record.pair, []).append(record)
            for pair, records in of_pair.items():
                each_answer = run.reader.answers(records)
                each_answer.sort(key=lambda answer: (answer["variant"], answer["number"] or 0))
                answers.append({"model": at + run.pairs[pair], "answers": each_answer})
            at += len(run.pairs)
        is_talk = any(run.reader.answers_are == "turn" for run in self.runs)
        prompts: dict[str, list[dict[str, Any]]] = {}
        for answer in (answer for each in answers if not is_talk for answer in each["answers"]):
            # What all were asked stands there once, for each variant.
            if answer["prompt"] and answer["prompt"] == prompts.setdefault(answer["variant"], answer["prompt"]):
                answer["prompt"] = []
        by_variant = [{"variant": name, "messages": prompts[name]} for name in sorted(prompts)]
        whole = {"item": name, "prompts": by_variant, "expected": expected, "row": row, "models": answers}
        images = {text: url for run in self.runs for text, url in run.images.items()}
        return {key: _shown(value, longest, images) if key != "item" else value for key, value in whole.items()}


class Matrix(SharedItems):
    """The cells of several runs: the means of each model's answers to each item."""

    def __init__(self, runs: Sequence[RunItems], names: Mapping[Path, str]) -> None:
        super().__init__(runs, names)
        shape, size = (len(self.models), len(self.items)), len(self.models) * len(self.items)
        self._labels = {name: at for at, name in enumerate(dict.fromkeys(name for run in runs for name in run.labels))}
        statuses = dict.fromkeys(name for run in runs for name in run.statuses)
        self._statuses = {name: at for at, name in enumerate(statuses)}
        columns, begin = [], 0
        for run, numbers in zip(runs, self._numbers, strict=True):
            item, pair, own_label, own_status, chars = run.whole().T
            cell = (pair.astype(np.int64) + begin) * len(self.items) + _placed(numbers, self.items)[item]
            own_label = _placed(run.labels, self._labels)[own_label]
            own_status = _placed(run.statuses, self._statuses)[own_status]
            columns.append((cell, own_label, own_status, chars, *run.parts().T))
            begin += len(run.pairs)
        # Of one run nothing is copied.
        of_all = columns[0] if len(columns) == 1 else map(np.concatenate, zip(*columns, strict=True))
        cells, label, status, length, score, cost, tokens = of_all
        self.answers = np.bincount(cells, minlength=size).reshape(shape)
        self.score = means(cells, score, size).reshape(shape)
        self.longest = np.zeros(size, np.int64)
        np.maximum.at(self.longest, cells, length)
        self.longest = self.longest.reshape(shape)
        self.cost, self.tokens = (sums(cells, each, size).reshape(shape) for each in (cost, tokens))
        self.status = np.full(size, -1)
        np.maximum.at(self.status, cells, status)
        self.status = self.status.reshape(shape)
        self.label, self.agree = (each.reshape(shape) for each in commonest(cells, label, size))
        self.differ = differs(cells, score, label, size).reshape(shape)
        self.figures: dict[str, NDArray[np.float64]] = {}
        self._steps: list[int] = []
        self._paths: list[str] = []
        if all(run.reader.answers_are == "turn" for run in runs):
            turns = np.concatenate([np.array(run.turns, np.int64) for run in runs] or [np.zeros(0, np.int64)])
            self._steps, self._paths = paths(cells, label, turns, size)

    def measure(self, figures: Mapping[tuple[Path, Pair], Mapping[str, Mapping[str, float | None]]]) -> None:
        """Takes figures of whole cells, by run and model, item and name; `score` in the place of the lines' mean."""
        for at, (run, pair) in enumerate(self.models):
            for item, values in figures.get((run.path, pair), {}).items():
                for name, value in values.items():
                    if name != "score" and name not in self.figures:
                        self.figures[name] = np.full(self.score.shape, _NAN)
                    rows = self.score if name == "score" else self.figures[name]
                    rows[at, self.items[item]] = _NAN if value is None else value

    def model_name(self, at: int) -> str:
        run, pair = self.models[at]
        where = self.names.get(run.path, "")
        return visible(f"{where}: {pair}" if where else str(pair))

    def spread(self) -> NDArray[np.float64]:
        """Returns the largest difference of the models' mean scores on each item; 0 without two."""
        low, high = (np.where(np.isnan(self.score), other, self.score) for other in (np.inf, -np.inf))
        apart = high.max(0, initial=-np.inf) - low.min(0, initial=np.inf)
        return np.where(apart > 0, apart, 0.0)

    def columns(self, kept: Sequence[int] | None = None, longest_title: int = 80, **more: Any) -> bytes:
        """Returns the object that the page's table is made of, as JSON: each item and model by its place, and for each
        kind of number a list for each model, of one number if all are the same. `kept`: the places of these items
        alone; `more`: other fields."""
        names = list(self.items)
        every = range(len(names)) if kept is None else kept
        groups: dict[str, int] = {}
        titles, expected, group = [""] * len(names), [""] * len(names), [-1] * len(names)
        for run, numbers in zip(self.runs, self._numbers, strict=True):
            for name, inner in numbers.items():
                place = self.items[name]
                titles[place] = titles[place] or brief(run.titles[inner], longest_title)
                expected[place] = expected[place] or run.expected[inner]
                if run.groups[inner]:
                    group[place] = groups.setdefault(run.groups[inner], len(groups))

        used, label = np.unique(self.label, return_inverse=True)
        words = list(self._labels)
        columns = {
            "items": [names[each] for each in every],
            "titles": [titles[each] for each in every],
            "expected": [expected[each] for each in every] if any(expected) else [],
            "groups": list(groups),
            "group": [group[each] for each in every] if groups else [],
            "models": [
                {
                    "name": self.model_name(each),
                    "folder": visible(self.names.get(run.path, "")),
                    "within": _within(run),
                }
                for each, (run, _) in enumerate(self.models)
            ],
            "labels": ["" if each < 0 else visible(words[each]) for each in used],
            "statuses": list(self._statuses),
            "answersAre": self.runs[0].reader.answers_are if self.runs else "trial",
            "isInOrder": self.is_in_order,
            "steps": [visible(words[each]) for each in self._steps],
            "figures": {name: listed(values, kept, 4) for name, values in self.figures.items()},
            "cells": {
                "answers": listed(self.answers, kept),
                "status": listed(self.status, kept),
                "score": listed(self.score, kept, 4),
                "label": listed(label.reshape(self.label.shape), kept),
                "agree": listed(self.agree, kept),
                "differ": listed(self.differ.astype(np.int8), kept),
                "longest": listed(self.longest, kept),
                "cost": listed(self.cost, kept, 8),
                "tokens": listed(self.tokens, kept),
                "path": [
                    [self._paths[begin + each] for each in every]
                    for begin in range(0, len(self._paths), len(names) or 1)
                ],
            },
        }
        return orjson.dumps({**columns, **more}, option=orjson.OPT_SERIALIZE_NUMPY)


def _numbers_of(runs: Sequence[RunItems], names: Mapping[Path, str]) -> list[dict[str, int]]:
    """Returns for each run the numbers of its items by their names on the page. One whose row is not that of an earlier
    run's item of this name is another item, and has the name of its run too."""
    rows: dict[str, int] = {}
    every = []
    for run in runs:
        numbers = {}
        for name, at in run.items.items():
            row = run.row_hashes[at]
            first = rows[name] = rows.get(name) or row
            is_same = row in (0, first)
            numbers[name if is_same else f"{name} ({names.get(run.path, run.path.name)})"] = at
        every.append(numbers)
    return every


def _row_hash(row: Mapping[str, Any]) -> int:
    """Returns a hash that is the same in every process."""
    digest = hashlib.blake2b(msgspec.json.encode(row, order="sorted"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _within(run: RunItems) -> tuple[float, float] | None:
    """Returns the least and the largest possible score; where a run's are not known, 0 and 1 if no score is outside."""
    score = run.parts()[:, 0]
    is_usual = ((score >= 0) & (score <= 1)).any() and not ((score < 0) | (score > 1)).any()
    return run.reader.within or ((0.0, 1.0) if is_usual else None)


def _placed(own: Iterable[str], every: Mapping[str, int]) -> NDArray[np.int64]:
    """Returns the place of each name of a run among those of all runs."""
    return np.array([every[name] for name in own], np.int64)


def _shown(value: Any, longest: int, images: Mapping[str, str]) -> Any:
    """Returns a value with every text in it fit to be shown, cut where it is too long, and with the images that were
    kept in place of their descriptions."""
    if isinstance(value, str):
        rest = len(value) - longest
        return visible(value) if rest <= 0 else f"{visible(value[:longest])}… ({rest:,} more characters)"
    if isinstance(value, dict):
        if (url := images.get(str(value.get("image")), "")) and len(url) <= _IMAGE_CHARS * longest:
            return {"image": url}
        return {visible(str(key)): _shown(each, longest, images) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(each, longest, images) for each in value]
    return value if isinstance(value, int | float | None) else _shown(str(value), longest, images)
