"""Reads a run's journals: which items are done, and the lines of unfinished ones.

One pass over the lines; whole records are read only when an item continues.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ....engine.exit_codes import WRONG_USAGE
from ....engine.folder_file import line_at, open_to_read
from ....engine.pairs import FinishedItems, Pair, pair_of
from ....engine.runs.run_folder import RunFolder
from ..door.item_line import ItemLine

UNRECORDED = "cost_unrecorded"
"""The manifest's field for the cost of calls whose steps have no line, since a stop came before."""

_Line = TypeVar("_Line")


class RecordError(ValueError):
    """Raised for a line that is no record of its benchmark; the message names the line, what was expected and what it
    holds."""

    exit_code = WRONG_USAGE


def decoded(lines: Iterable[str | bytes], kind: type[_Line], source: str, before: int = 0) -> Iterator[_Line]:
    """Yields every line that is not blank, decoded. Raises RecordError with the number, from 1, of the first line of
    another kind; `before`: the number of lines before these."""
    decode = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(lines, before + 1):
        if not line.strip():
            continue
        try:
            yield decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{source}: line {number}: {error}") from error


def each_once(records: Iterable[Any], source: str) -> Iterator[Any]:
    """Yields the records. Raises RecordError if one pair has an id twice. Records without an id, as other programs
    write them, are not compared."""
    seen: set[tuple[str, Pair]] = set()
    for record in records:
        key = (record.id, pair_of(record))
        if record.id and key in seen:
            raise RecordError(f"{source}: id {record.id} of {record.model} stands there twice: keep one")
        seen.add(key)
        yield record


def encode(record: object) -> bytes:
    """Returns a record as a journal line without its newline. Lone surrogates, as file names may contain, are replaced,
    so that no paid answer is lost to one."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return msgspec.json.encode(_mended(msgspec.to_builtins(record)))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_mended(each) for each in value]
    return {name: _mended(each) for name, each in value.items()} if isinstance(value, dict) else value


def read_done(
    folder: RunFolder,
    kind: type[ItemLine] = ItemLine,
    is_own: Callable[[ItemLine], bool] | None = None,
    note: Callable[[Pair, ItemLine], None] = lambda pair, line: None,
) -> FinishedItems:
    """Returns which items are done and what all lines cost, checks every line, and has each of the records' own noted.
    `is_own`: whether a line is of an item of the run (None: all are); others are of no done item. Raises
    DamagedJournal, or RecordError for a line that is no record."""
    ids: defaultdict[Pair, set[str]] = defaultdict(set)
    answered: set[str] = set()
    cut: Counter[str] = Counter()
    cost = float(folder.manifest.get(UNRECORDED, 0.0))
    for journal in (folder.records, folder.failures):
        is_record = journal is folder.records
        for line in decoded(journal.read_on() if is_record else journal.read(), kind, str(journal.path)):
            cost += line.cost or 0.0
            if is_own is not None and not is_own(line):
                continue
            pair = line.pair
            ids[pair].add(line.line_id)
            if not is_record:
                continue
            note(pair, line)
            if line.is_cut_empty:
                cut[pair.model] += 1
            else:
                answered.update(line.answered)
    return FinishedItems(ids, cost, frozenset(answered), {model: cut[model] for model in cut.keys() - answered})


class OpenItems:
    """The unfinished items of a run, with the lines of their done steps. `steps`: each item's number of steps, by its
    id."""

    def __init__(
        self, folder: RunFolder, done: FinishedItems, steps: Mapping[str, int], kind: type[ItemLine] = ItemLine
    ) -> None:
        self._path: Path = folder.records.path
        self._done = done
        self._places: dict[tuple[Pair, str], array[int]] = {}
        if not done.count():
            return
        decode = msgspec.json.Decoder(kind).decode
        places: dict[tuple[Pair, str], array[int]] = {}
        begin = 0
        for line in folder.records.read():
            fields = decode(line)
            key = (fields.pair, fields.item)
            places.setdefault(key, array("q")).append(begin)
            begin += len(line) + 1
        self._places = {key: at for key, at in places.items() if len(at) < steps.get(key[1], 0)}

    def lines_of(self, pair: Pair, item: str, ids: Sequence[str]) -> list[bytes] | None:
        """Returns the lines of an item's done steps, empty if it has none; None if the item is finished, or if a step
        failed and is not retried."""
        done = self._done.of(pair)
        ended = sum(each in done for each in ids)
        if ended == len(ids):
            return None
        places = self._places.get((pair, item), ()) if ended else ()
        if ended > len(places):
            return None
        if not places:
            return []
        with open_to_read(self._path) as file:
            return [line_at(file, place) for place in places]
