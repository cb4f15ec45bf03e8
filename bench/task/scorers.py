"""Scorers: rules that read an answer's text and score it.

Has `match`, `regex`, `numeric` and functions as scorers; `choice` reads letters, `judge` asks a model. An answer that a
scorer can't read has no score and counts as silence, never as wrong.
"""

from __future__ import annotations

import decimal
import math
import numbers
import re
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from operator import eq
from pathlib import Path
from traceback import walk_tb
from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from ...engine.call import Reply
from ...metrics.statistics.intervals import Bounds
from ...metrics.task.trials import FUNCTION_RAISED, GAVE_NONE, OF_FUNCTION
from .numbers import Decimal, NumberRead, Which, number_in
from .rows import TaskError, TaskRow, shown
from .source import source_of
from .template import Template, template
from .texts import is_anywhere, is_at_end, is_at_start, normalised

ScoreFunction: TypeAlias = Callable[[Reply, dict[str, Any]], Any]
Place = Literal["all", "start", "end", "anywhere"]
Percent = Literal["same", "hundredths", "ignored"]

_PLACES: Mapping[str, Callable[[str, str], bool]] = {
    "all": eq,
    "start": is_at_start,
    "end": is_at_end,
    "anywhere": is_anywhere,
}
_READ_MAX, _WORDS_MAX = 200, 1_000
# Squares of larger scores, or their sums, overflow a float.
_LARGEST = 1e150


class Score(Struct, frozen=True):
    """A scorer's result for one answer.

    value: the score; None if the answer can't be read.

    read: what was read in the answer, such as the letter of a choice; None if nothing in particular.

    problem: why there is no score; None if there is one.

    parts: the scores of a function that returns several, by name, the main one first; else empty.
    """

    value: float | None
    read: str | None = None
    problem: str | None = None
    parts: Mapping[str, Score] = {}


class Scorer(Struct, frozen=True):
    """A rule that scores answers. `within`: the least and the largest possible score (None: not known)."""

    within: ClassVar[Bounds | None] = (0.0, 1.0)

    @property
    def has_labels(self) -> bool:
        """Whether it reads one label in an answer, and `wanted` is the label of the row."""
        return False

    def label(self, text: str) -> str:
        """Returns the label that a text names."""
        return normalised(text)

    def check(self, row: TaskRow) -> None:
        """Raises TaskError if the row lacks a column that scoring needs."""
        self.wanted(row)

    @abstractmethod
    def score(self, reply: Reply, row: TaskRow) -> Score:
        """Returns the score of an answer that is not empty."""

    def describe(self) -> dict[str, Any]:
        """Returns the values that decide the scores, for the manifest."""
        options = {name: _described(getattr(self, name)) for name in self.__struct_fields__}
        return {"scorer": type(self).__name__.lower(), **options}

    @abstractmethod
    def wanted(self, row: TaskRow) -> object:
        """Returns what an answer to the row is compared with."""


class Match(Scorer, frozen=True):
    """The scorer that compares the answer with one or several expected texts: see `match`."""

    expected: tuple[Template, ...]
    at: Place = "all"
    exact: bool = False

    def score(self, reply: Reply, row: TaskRow) -> Score:
        text = reply.text if self.exact else normalised(reply.text)
        stands = _PLACES[self.at]
        return Score(float(any(stands(wanted, text) for wanted in self.wanted(row))))

    @property
    def has_labels(self) -> bool:
        return self.at == "all"

    def label(self, text: str) -> str:
        return text if self.exact else normalised(text)

    def wanted(self, row: TaskRow) -> list[str]:
        wanted = [str(value) for each in self.expected for value in each.alternatives(row)]
        if not self.exact:
            wanted = [normalised(text) for text in wanted]
        if not all(wanted):
            raise TaskError(f"score: an expected text of {row.where} is empty, or holds nothing but punctuation")
        return wanted


class Regex(Scorer, frozen=True):
    """The scorer that looks for a pattern in the answer: see `regex`."""

    pattern: str
    flags: int = 0
    expected: Template | None = None

    def score(self, reply: Reply, row: TaskRow) -> Score:
        matches = list(re.finditer(self.pattern, reply.text, self.flags))
        last = matches[-1] if matches else None
        if self.expected is None:
            return Score(float(last is not None), None if last is None else last[0][:_READ_MAX])
        if last is None:
            return Score(None, problem="the pattern matches nothing in the answer")
        read = (last[1] if last.re.groups else last[0]) or ""
        if not read.strip():
            return Score(None, problem="the pattern matches an empty text")
        return Score(Match((self.expected,)).score(Reply(read), row).value, read[:_READ_MAX])

    @property
    def has_labels(self) -> bool:
        return self.expected is not None

    def wanted(self, row: TaskRow) -> object:
        return None if self.expected is None else Match((self.expected,)).wanted(row)


class Numeric(Scorer, frozen=True):
    """The scorer that compares the number in the answer with the expected one: see `numeric`."""

    expected: Template
    tolerance: float = 0.0
    relative: float = 0.0
    percent: Percent = "same"
    decimal: Decimal = "."
    which: Which = "answer"

    def score(self, reply: Reply, row: TaskRow) -> Score:
        read, wanted = number_in(reply.text, self.decimal, self.which), self.wanted(row)
        if read is None:
            return Score(None, problem="the answer gives no number for certain")
        if self.percent == "same" and read.is_percent != wanted.is_percent:
            return Score(None, read.text, "a percent sign stands in one of answer and expected number alone")
        value, right = self._value(read), self._value(wanted)
        allowed = max(_exact(self.tolerance), _exact(self.relative) * abs(right))
        return Score(float(abs(value - right) <= allowed), read.text)

    def _value(self, number: NumberRead) -> Any:
        return number.value / 100 if number.is_percent and self.percent == "hundredths" else number.value

    def wanted(self, row: TaskRow) -> NumberRead:
        (value, *more) = self.expected.alternatives(row)
        text = value if isinstance(value, str) else repr(value)
        # A number of Python has a full stop, whatever decimal sign the texts have.
        decimal = self.decimal if isinstance(value, str) else "."
        found = None if more or isinstance(value, bool) else number_in(text, decimal)
        if found is None:
            raise TaskError(f"score: the expected answer of {row.where} is {shown(value)}: expected one number")
        return found


class Function(Scorer, frozen=True):
    """A user's function as a scorer: `function(reply, row)` returns a number, True or False, or a mapping of names to
    these."""

    function: Callable[..., Any]
    within: ClassVar[Bounds | None] = None
    main: ClassVar[str] = "score"

    def score(self, reply: Reply, row: TaskRow) -> Score:
        return self.scored(reply, row.copied())

    def scored(self, *arguments: Any) -> Score:
        """Returns the score that the function gives to its arguments."""
        try:
            return self.read(self.function(*arguments))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a user's function: the answer is paid for, and is kept)
            return failed(error)

    def read(self, result: Any) -> Score:
        """Returns the score for what the function gave."""
        if not isinstance(result, Mapping):
            return _score_of(result)
        parts = {str(name): _score_of(value) for name, value in result.items()}
        if not parts:
            return Score(None, problem="the score function gave no score")
        name = self.main if self.main in parts else next(iter(parts))
        return Score(parts[name].value, None, parts[name].problem, {name: parts[name], **parts})

    def describe(self) -> dict[str, Any]:
        return {"scorer": "function", **source_of(self.function)}

    def wanted(self, row: TaskRow) -> object:
        """Checks nothing: a function can only be called with an answer."""


def failed(error: BaseException) -> Score:
    """Returns the score of an answer whose function raised an error: none."""
    return Score(None, problem=f"{FUNCTION_RAISED} {error_text(error)}")


def error_text(error: BaseException) -> str:
    """Returns an error of a user's function as `KeyError in task.py line 7: 'total'`."""
    try:
        words = str(error)[:_WORDS_MAX].encode(errors="replace").decode()
    except Exception:  # noqa: BLE001  (the author's own class of errors may fail at this too)
        words = "it has no words"
    return f"{type(error).__name__}{_place_of(error)}: {words}"


def _described(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_described(each) for each in value]
    return value.text if isinstance(value, Template) else value


def match(*expected: str, at: Place = "all", exact: bool = False) -> Match:
    """Returns a scorer that gives 1 where the answer is one of the expected texts, else 0.

    expected: templates, as "{capital}". One that is a single column holding a list allows each value of the list.
    at: where the expected text must stand: "all": it is the whole answer; "start" and "end": the answer begins or ends
    with it; "anywhere": it stands in the answer as whole words (an answer that denies it matches too).
    exact: compare the texts as they are, to the last character.

    Unless `exact`, equal are upper and lower case; any whitespace; forms that Unicode calls compatible (NFKC); kinds of
    quotation marks and dashes; and texts with and without quotation marks, brackets, `*`, `_` and closing punctuation
    at their ends. Accents, signs, currencies, percent signs and punctuation inside count.
    """
    if not expected:
        raise TaskError('match: expected at least one template, as ms.match("{capital}")')
    if at not in _PLACES:
        raise TaskError(f"match: at: expected one of {', '.join(_PLACES)}, got {shown(at)}")
    return Match(tuple(template(text, "score") for text in expected), at, exact)


def regex(pattern: str, expected: str | None = None, flags: int = 0) -> Regex:
    """Returns a scorer that looks for a pattern of Python's `re` in the answer; the last match counts.

    Without `expected`, the score is 1 where the pattern matches and 0 where it does not. With `expected` (a template),
    the text of the pattern's first group, or of the whole match where it has none, is compared as `match` does; an
    answer that the pattern does not match cannot be read and has no score.
    """
    try:
        re.compile(pattern, flags)
    except (re.error, TypeError) as error:
        raise TaskError(f"regex: {shown(pattern)} is no pattern: {error}") from error
    return Regex(pattern, int(flags), None if expected is None else template(expected, "score"))


def numeric(
    expected: str,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    percent: Percent = "same",
    decimal: Decimal = ".",
    which: Which = "answer",
) -> Numeric:
    """Returns a scorer that gives 1 where the answer gives the expected number, 0 where it gives another.

    expected: a template of the right number.
    tolerance: how far the answer may be away; relative: the same as a share of the expected number; the larger counts.
    With neither, numbers must be equal, which 0.5, .50, 1/2 and 5e-1 are.
    percent: "same": an answer with a percent sign where the data has none (or the other way) cannot be read;
    "hundredths": 50% is 0.5; "ignored": 50% is 50.
    decimal: the decimal sign in answers and texts of the data. With ".", thousands may be separated by commas; with ","
    by full stops; with both by apostrophes, underscores and thin spaces. "1,5" with a full stop as decimal sign is
    none.
    which: "answer": the number that the answer states last ("the answer is 42", "answer: 42", `\\boxed{42}`, `####
    42`), else the only one of its last line, else the only one of all; "first" or "last": that one of the whole answer.

    Units and currencies are passed over, and so are digits among letters, as in a digest (9c3d8c). The words hundred to
    trillion and powers of ten (1.5 × 10^6) are multiplied; an abbreviation (5k, 3M) and an answer with several
    different numbers and no statement cannot be read.
    """
    for name, value in (("tolerance", tolerance), ("relative", relative)):
        if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
            raise TaskError(f"numeric: {name}: expected a number of 0 or more, got {shown(value)}")
    for name, word, words in (
        ("percent", percent, ("same", "hundredths", "ignored")),
        ("decimal", decimal, (".", ",")),
        ("which", which, ("answer", "first", "last")),
    ):
        if word not in words:
            raise TaskError(f"numeric: {name}: expected one of {', '.join(words)}, got {shown(word)}")
    return Numeric(template(expected, "score"), tolerance, relative, percent, decimal, which)


def _place_of(error: BaseException) -> str:
    """Returns ` in task.py line 7`: the last line of the function's own file that the error came through; empty if the
    function was never entered."""
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)][1:]
    lines = [line for file, line in places if file == places[0][0]]
    return f" in {Path(places[0][0]).name} line {lines[-1]}" if lines else ""


def _score_of(value: Any) -> Score:
    """Returns the score for a function's result; a score without value for anything but a number."""
    number = number_of(value)
    return Score(None, problem=f"{OF_FUNCTION} {number}") if isinstance(number, str) else Score(number)


def number_of(value: Any) -> float | str:
    """Returns a function's result as a number: a finite one, True or False, of Python or numpy; for anything else a
    sentence's end, such as "gave None"."""
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
    if plain is None:
        return GAVE_NONE.removeprefix(f"{OF_FUNCTION} ")
    if isinstance(plain, Coroutine):
        plain.close()
        return "gave a coroutine: a function that asks models is ms.scorer(function, models=[…])"
    if not isinstance(plain, numbers.Real | decimal.Decimal) or plain != plain or abs(plain) == math.inf:
        return f"gave {shown(value)}, which is no finite number"
    size: Any = abs(plain)
    if size > _LARGEST:
        return f"gave {shown(value)}, which is too large for a mean"
    return float(plain)


def _exact(value: float) -> Any:
    from fractions import Fraction

    return Fraction(str(value))
