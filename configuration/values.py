"""Kinds of option values, read from a flag's text or a file's value.

Each kind states what it expects; an error names that and the value given. Knows no option by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from ..engine.server_address import FORM, PASSWORD_VARIABLE, USER_VARIABLE, address_of, is_address

NONE = "none"
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_DURATION = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*(s|m|min|h)?\s*")
_AGE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(m|h|d|w)\s*")
_AGE_S = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ANY = re.compile(".*")
_ENV = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class ValueKind(Protocol[_T_co]):
    """A kind of value. `expected` describes a valid one in messages; `read` raises ValueError for an invalid one. A
    text may stand for a number."""

    @property
    def expected(self) -> str: ...

    def read(self, value: object) -> _T_co: ...


def read(kind: ValueKind[_T], value: object) -> _T:
    """Returns the value. Raises ValueError with what was expected and what was given."""
    try:
        return kind.read(value)
    except (ValueError, OverflowError):
        raise ValueError(f"expected {kind.expected}, got {_excerpt(kind, value)}") from None


def _excerpt(kind: ValueKind[Any], value: object) -> str:
    """Returns a value for a message, cut to one line, without the secrets of an address."""
    if isinstance(value, str) and ("://" in value or kind is BASE_URL):
        from ..engine.page_urls import shown_address

        # An address whose scheme was forgotten may hold a password too.
        scheme = "" if "://" in value else "http://"
        value = shown_address(scheme + value).removeprefix(scheme)
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    hint = ""
    several = value if isinstance(value, list) else [value]
    if isinstance(kind, Variable) and not all(isinstance(each, str) and _ENV.fullmatch(each) for each in several):
        return f"something else (not shown: it may be a {kind.secret})"
    if isinstance(kind, ModelName):
        hint = ": separate models by spaces" if "," in text else ": name each model, without *" if "*" in text else ""
    return (text if len(text) <= 60 else f"{text[:59]}…") + hint


def _number_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    return float(value)


class Number(Struct, frozen=True):
    """The kind of value that is a number from `least` to `most`; `what` names it in messages."""

    what: str
    least: float
    most: float = 1e12

    @property
    def expected(self) -> str:
        return f"{self.what}, {self.least:g} to {self.most:,.15g}"

    def read(self, value: object) -> float:
        number = _number_of(value)
        if not self.least <= number <= self.most:  # NaN is in no range
            raise ValueError(value)
        return number + 0.0  # -0.0 is 0.0


class NumberOrNone(Number, frozen=True):
    """The kind of value that is a number, or the word `none`: it is not sent."""

    @property
    def expected(self) -> str:
        return f"{super().expected}, or none"

    def read(self, value: object) -> float | None:  # type: ignore[override]
        return None if value == NONE else super().read(value)


class WholeNumber(Struct, frozen=True):
    """The kind of value that is a whole number from `least` to `most`; `what` names the things counted in messages."""

    what: str
    least: int = 1
    most: int = 1_000_000_000

    @property
    def expected(self) -> str:
        return f"a whole number of {self.what}, {self.least} to {self.most:,}"

    def read(self, value: object) -> int:
        number = _number_of(value)
        if not (self.least <= number <= self.most and number == int(number)):
            raise ValueError(value)
        return int(number)


class Duration(Struct, frozen=True):
    """The kind of value that is a duration: seconds as a number, or a text with a unit. It is read as seconds."""

    what: str
    most: float = 1e9
    may_be_zero: bool = False

    @property
    def expected(self) -> str:
        return f"{self.what}{', 0 or more' if self.may_be_zero else ' above 0'}, in seconds or as 90s, 10m, 1h"

    def read(self, value: object) -> float:
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        seconds = _number_of(value) if match is None else float(match[1]) * _SECONDS[match[2]]
        if not 0 <= seconds <= self.most or (seconds == 0 and not self.may_be_zero):
            raise ValueError(value)
        return seconds


class WordChoice(Struct, frozen=True):
    """The kind of value that is one of `words`."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.words)}"

    @property
    def metavar(self) -> str:
        """What help shows in place of a value. Of more than four words the option's text has them: it is empty."""
        return "|".join(self.words) if len(self.words) <= 4 else ""

    def read(self, value: object) -> str:
        if value not in self.words:
            raise ValueError(value)
        return str(value)


class Switch(Struct, frozen=True):
    """The kind of value that is on or off: a flag without a value, true or false in a file."""

    expected: str = "true or false"

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(value)
        return value


class Text(Struct, frozen=True):
    """The kind of value that is a printable text, not empty, and of this `form` if it has one; `what` describes it in
    messages."""

    what: str
    form: re.Pattern[str] = _ANY

    @property
    def expected(self) -> str:
        return self.what

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or not self.form.fullmatch(value):
            raise ValueError(value)
        return value


class Parsed(Struct, Generic[_T_co], frozen=True):
    """The kind of value that `read` makes of another; it raises ValueError for an invalid one."""

    expected: str
    read: Callable[[object], _T_co]


class FilePath(Text, frozen=True):
    """The path of a file or folder. A relative one starts at the folder of the file that holds it."""


class CachePlace(FilePath, frozen=True):
    """The path of a cache's folder, or the address of a server that several machines share."""

    def read(self, value: object) -> str:
        text = super().read(value)
        if "://" in text:
            address_of(text)
        return text


def is_path(kind: ValueKind[Any], value: object) -> bool:
    """Whether a value of this kind is a path; that of a cache may also be an address."""
    return isinstance(kind, FilePath) and not is_address(str(value))


class Variable(Struct, frozen=True):
    """The kind of value that is the variable of a secret, as `env:NAME`; it is read as NAME. A wrong value is in no
    message: it may be the secret itself."""

    secret: str

    @property
    def expected(self) -> str:
        return f"env:NAME, the variable that holds the {self.secret}"

    def read(self, value: object) -> Any:
        if not isinstance(value, str) or not _ENV.fullmatch(value):
            raise ValueError
        return value.removeprefix("env:")


class Variables(Variable, frozen=True):
    """The kind of value that is a list of variables, each named once; it is read as a tuple of names."""

    @property
    def expected(self) -> str:
        return 'a list of env:NAME, each named once, as in ["env:OPENAI_API_KEY", "env:OPENAI_API_KEY_2"]'

    def read(self, value: object) -> Any:
        names = tuple(map(super().read, value)) if isinstance(value, list) else ()
        if not names or len(set(names)) < len(names):
            raise ValueError
        return names


class ModelName(Text, frozen=True):
    """The kind of value that is a model's name, as provider/model."""

    what: str = "a model as provider/model, such as openai/gpt-6-luna"
    form: re.Pattern[str] = re.compile(r"[^ ,*/]+/[^ ,*]+")


class NumbersByName(Struct, frozen=True):
    """The kind of value that is an object of numbers of one kind, such as factors of prices."""

    kind: Number

    @property
    def expected(self) -> str:
        return f"an object of names, each with {self.kind.expected}"

    def read(self, value: object) -> dict[str, float]:
        if not isinstance(value, dict):
            raise ValueError(value)
        return {str(name): self.kind.read(each) for name, each in value.items()}


class Several(Struct, frozen=True):
    """The kind of value that is one value of another kind, or a list of them; it is read as a tuple."""

    kind: ValueKind[Any]

    @property
    def expected(self) -> str:
        return f"{self.kind.expected}, or a list of such"

    def read(self, value: object) -> tuple[Any, ...]:
        given = value if isinstance(value, list) else [value]
        texts = [each for each in given if isinstance(each, str) and each != NONE]
        if not given or (isinstance(self.kind, Number) and texts):
            raise ValueError(value)
        return tuple(self.kind.read(each) for each in given)


def _any_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _base_url(value: object) -> str:
    from ..engine.page_urls import is_address

    if not isinstance(value, str) or not is_address(value):
        raise ValueError(value)
    return value.rstrip("/")


def _body_fields(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise ValueError(value)
    return value


def _search_name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value.removeprefix("search/")):
        raise ValueError(value)
    return f"search/{value.removeprefix('search/')}"


def _age(value: object) -> float:
    match = _AGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(value)
    return float(match[1]) * _AGE_S[match[2]]


ANY_TEXT = Parsed("a text", _any_text)
# An HTTP address; where one is expected, it is in messages without the secrets that it may hold.
BASE_URL = Parsed(
    "an address such as http://127.0.0.1:8000/v1, without a user, password or query in it",
    _base_url,
)
BODY_FIELDS = Parsed("a table of fields of a request's body", _body_fields)
# With or without `search/` before its name.
SEARCH_NAME = Parsed("a search engine, such as brave, searxng or corpus", _search_name)
# In seconds.
AGE = Parsed("an age with its unit, as 90m, 12h, 30d or 8w", _age)
RPM = Number("a number of requests a minute", 1)
TPM = Number("a number of tokens a minute", 1)
ITPM = Number("a number of input tokens a minute", 1)
OTPM = Number("a number of output tokens a minute", 1)
BURST = Number("a number of calls that are admitted at once", 1)
WORKERS = WholeNumber("processes", 1, 10_000)
CLUSTER = Text(
    "local, or the address of a Ray cluster as HOST:PORT", re.compile(r"local|auto|[A-Za-z0-9._\-\[\]:]+:\d+")
)
CONCURRENCY = WholeNumber("calls in flight", 1, 100_000)
MAX_COST = Number("a number of dollars", 0, 1e9)
PRICE = Number("a number of dollars a million tokens", 0, 1e6)
TIMEOUT = Duration("a time for a whole call")
PATIENCE = Duration("a time")
TEMPERATURE = NumberOrNone("a temperature", 0, 100)
EFFORT = Text("a reasoning effort, such as none, low or high")
CACHE_FOLDER = FilePath(
    "a local folder (the default one also has what this machine uses of a shared cache)", re.compile("(?!.*://).*")
)
CACHE_PLACE = CachePlace(
    f"a folder, or the address of a shared cache as {FORM}, without a user or password in it (they are taken from "
    f"{USER_VARIABLE} and {PASSWORD_VARIABLE})"
)
# A sink of an installed package, as NAME or NAME:ARGUMENT, where ARGUMENT is what it is opened with.
SINK_NAME = Text(
    "NAME or NAME:ARGUMENT, a sink that an installed package offers, without a user or password in it "
    "(the run's manifest keeps it)",
    re.compile(f"(?!.*://.*@){NAME.pattern}(:.*)?"),
)
# A host from which pages may be fetched although its address is not public.
ALLOWED_HOST = Text(
    "a host as NAME, NAME:PORT or *.NAME, with =ADDRESS:PORT where its pages are to be taken from there",
    re.compile(r"(?:\*\.)?[A-Za-z0-9._\-\[\]:]+(?:=[A-Za-z0-9._\-\[\]:]+)?"),
)
