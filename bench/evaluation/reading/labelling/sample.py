"""Draws a sample of a run's answers for people to label.

The sample depends on answers and seed, not on the order of records, and is even over strata: pair and the
label that the first reading gives. Knows no screen and no file but the records.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .....configuration.errors import UsageError
from .....engine.pairs import Pair
from .....engine.runs.proof import ANSWERED
from ...door.defect import BenchmarkDefect, benchmark_code
from ...door.kept_answer import Key, key_of, unique_name
from ...door.label import Label, Labeller
from ...door.record import AnswerRecord
from ...running.journals import RecordError, decoded
from ...running.record_lines import record_lines

_Answer = TypeVar("_Answer", bound=AnswerRecord)


class Stratum(NamedTuple):
    """The answers of one pair that the first reading gives one label; empty without a reading."""

    pair: Pair
    reading: str


class SampleEntry(NamedTuple):
    """A sampled answer: its key, and the question that people are asked about it."""

    key: Key
    label: Label

    @property
    def stratum(self) -> Stratum:
        return stratum_of(self.key.pair, self.label)


class StratumSizes(Struct, frozen=True):
    """How many answers of a run can be labelled, by stratum."""

    whole: Counter[Stratum]
    """The answers that can be labelled."""
    readings: Mapping[str, Counter[Stratum]]
    """Those of them that each reading covers, by the reading's name."""


class AnswerFile(Struct, frozen=True):
    """The answers in a records file, each with the benchmark's label: what people are asked about it. Raises UsageError
    if the file can't be read, and BenchmarkDefect for errors in the benchmark's code."""

    _path: Path
    _labeller: Labeller
    _title: str

    def __repr__(self) -> str:
        return f"<AnswerFile {self._path} of {self._title}>"

    def draw(self, size: int, seed: int) -> list[SampleEntry]:
        """Returns a sample of this size from the answers that the benchmark gives a label, with their histories; all of
        these answers if there are fewer."""
        return self._with_histories(list(self._labelled(draw(self._read(), size, seed, self._stratum))))

    def find(self, keys: Sequence[Key]) -> dict[Key, SampleEntry]:
        """Returns the sample entries of these keys, without histories. Leaves out keys that are not in the file,
        answers without text, and answers that the benchmark gives no label."""
        return {entry.key: entry for entry in self._labelled(find(self._read(), keys).values())}

    def sizes(self) -> StratumSizes:
        """Returns how many answers each stratum has, for each reading."""
        whole: Counter[Stratum] = Counter()
        readings: dict[str, Counter[Stratum]] = {}
        for entry in self._labelled(self._read()):
            whole[entry.stratum] += 1
            for reading in entry.label.readings:
                readings.setdefault(reading, Counter())[entry.stratum] += 1
        return StratumSizes(whole, readings)

    def _stratum(self, answer: AnswerRecord) -> Stratum | None:
        label = self._label(answer)
        return None if label is None else stratum_of(key_of(answer).pair, label)

    def _read(self) -> Iterator[Any]:
        try:
            yield from answers_of(self._path, self._labeller.record)
        except OSError as error:
            raise UsageError(f"{self._path}: expected a readable file, got: {error.strerror}") from error

    def _labelled(self, answers: Iterable[AnswerRecord]) -> Iterator[SampleEntry]:
        """Yields the answers that the benchmark gives a label."""
        for answer in answers:
            if (label := self._label(answer)) is not None:
                yield SampleEntry(key_of(answer), label)

    def _with_histories(self, entries: list[SampleEntry]) -> list[SampleEntry]:
        """Returns the entries with the conversation before each of these answers, read in one more pass."""
        exchange = self._labeller.exchange
        if exchange is None:
            return entries
        with benchmark_code(f"{self._title}, history"):
            before = {entry.key: _earlier(entry.key) for entry in entries}
            places = {key for keys in before.values() for key in keys}
            turns = {key_of(each): exchange(each) for each in self._read() if key_of(each) in places} if places else {}
        return [
            SampleEntry(key, replace(label, history=tuple(filter(None, map(turns.get, before[key])))))
            for key, label in entries
        ]

    def _label(self, answer: AnswerRecord) -> Label | None:
        with benchmark_code(f"{self._title}, record {answer.id!r}"):
            label = self._labeller.label(answer)
        if label is not None and not isinstance(label, Label):
            raise BenchmarkDefect(f"{self._title}: label() must make a Label or None, it made {label!r}")
        return label


def _earlier(key: Key) -> list[Key]:
    """Returns the keys of the answers before this one in its conversation, in order."""
    item, _, step = key.id.rpartition("/")
    return [Key(key.pair, f"{item}/{number}") for number in range(1, int(step) if step.isdecimal() else 1)]


def answers_of(path: Path, kind: type[Any]) -> Iterator[Any]:
    """Yields every record with a text, in the file's order. Skips a last line that a kill cut. Raises DamagedJournal
    for a line whose checksum is wrong, RecordError for one that is no record."""
    for answer in decoded(record_lines(path, is_quiet=True), kind, str(path)):
        if answer.status in ANSWERED and answer.text is not None and answer.text.strip():
            yield answer


def stratum_of(pair: Pair, label: Label) -> Stratum:
    """Returns the stratum of an answer: its pair, and what the first reading made of it."""
    return Stratum(pair, next(iter(label.readings.values()), ""))


def draw(
    answers: Iterable[_Answer],
    size: int,
    seed: int = 0,
    stratum: Callable[[_Answer], Stratum | None] = lambda answer: Stratum(key_of(answer).pair, ""),
) -> list[_Answer]:
    """Returns a sample of `size` answers, or all if there are fewer, in one pass that keeps at most twice `size` of
    each stratum.

    Pairs take turns, and within each pair its labels, so the sample and each beginning of it are even over pairs, and
    over the labels of a pair as far as there are answers. `stratum` returns None for an answer that can't be drawn.
    """
    if size < 1:
        raise ValueError(f"size ({size}) must be >= 1")
    # The line's number keeps answers from being compared.
    kept: dict[Stratum, list[tuple[int, int, _Answer]]] = {}
    for number, answer in enumerate(answers):
        if (place := stratum(answer)) is not None:
            entries = kept.setdefault(place, [])
            entries.append((_rank(key_of(answer), seed), number, answer))
            if len(entries) > 2 * size:
                entries[:] = sorted(entries)[:size]
    pairs: dict[Pair, list[tuple[int, int, int, _Answer]]] = {}
    for place, entries in kept.items():
        pairs.setdefault(place.pair, []).extend((turn, *each) for turn, each in enumerate(sorted(entries)[:size]))
    turns = [
        (turn, rank, number, answer)
        for ranked in pairs.values()
        for turn, (_, rank, number, answer) in enumerate(sorted(ranked))
    ]
    drawn = [answer for *_, answer in sorted(turns)[:size]]
    _check_keys_differ(key_of(answer) for answer in drawn)
    return drawn


def find(answers: Iterable[_Answer], keys: Sequence[Key]) -> dict[Key, _Answer]:
    """Returns the answers with these keys; keys without an answer are left out."""
    wanted = set(keys)
    matches = [answer for answer in answers if key_of(answer) in wanted]
    _check_keys_differ(key_of(answer) for answer in matches)
    return {key_of(answer): answer for answer in matches}


def _rank(key: Key, seed: int) -> int:
    """Returns a pseudo-random number from key and seed; the lowest ranks are drawn."""
    named = "\n".join((str(seed), unique_name(key)))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big")


def _check_keys_differ(keys: Iterable[Key]) -> None:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise RecordError(f"records: id {key} stands there twice: keep one")
        seen.add(key)
