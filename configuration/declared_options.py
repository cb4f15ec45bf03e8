"""Options declared once, as the fields of a struct: their flags, keys, help and manifest are derived here.

A field declares its kind, its word in the help and its help by an `Option`; a plain annotation has a default kind.
Knows no option and no struct by name. Light to import, since every `--help` needs it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct, structs

from . import values
from .errors import UsageError
from .values import ANY_TEXT, NONE, FilePath, ModelName, Number, Several, Switch, ValueKind, WholeNumber, WordChoice

_S = TypeVar("_S", bound=Struct)
_T = TypeVar("_T")

EVERY_VERB = ("run", "score", "report")
# How often a positional option may be given: by whether it takes several values and whether it is required.
_NARGS = {(False, True): None, (False, False): "?", (True, True): "+", (True, False): "*"}
_MOST = 1_000_000_000_000
_AT_FIELD = re.compile(r"(.*) - at `\$\.(\w+).*`", re.DOTALL)


class Option(Struct, frozen=True):
    """The declaration of an option beside its type: `turns: Annotated[int, Option(WholeNumber("turns"), "N", "turns a
    talk has")]`."""

    kind: ValueKind[Any] | None = None
    """The kind of one value. None: by the annotation."""
    metavar: str = ""
    """The word that stands for the value in the help. Empty: the field's name in capitals."""
    help: str = ""
    """The line of the help. `{each}` or `{any}` in it stands for the defaults of all benchmarks that share it."""
    default: str = ""
    """The default in words, where the help asks for it."""
    verbs: tuple[str, ...] = EVERY_VERB
    """The verbs that take it. A reading may concern tables alone, and no run."""
    is_repeated: bool = False
    """Whether each of several values has a flag of its own; else they follow one flag."""
    one_of: str = ""
    """What it decides. Only one of the options that decide the same may be given; without any, the first one holds."""
    beside: tuple[str, ...] = ()
    """The fields beside one of which it may be given; if they decide something, all of them decide the same. Empty:
    it may be given by itself."""
    sets: str = ""
    """The field of the engine's settings that it sets. Empty: that of its own name, where there is one."""
    barred: Mapping[str, str] = {}
    """Why it can't be given beside the others of these, by field, where there is more to say."""

    def by_default(self, told: str) -> Option:
        """Returns this option with its default in words."""
        return structs.replace(self, default=told)


class Positional(Option, frozen=True):
    """An option that is given by its place on the command line, without a flag."""


class Heading(Struct, frozen=True):
    """The heading, in a verb's help, of an option and of those after it: a mark beside its Option."""

    title: str


class DeclaredOption(Option, frozen=True, kw_only=True):
    """One field of an options struct: its Option with all that the field decides where the Option does not."""

    name: str
    """The field's name."""
    kind: ValueKind[Any]
    """The kind of one value."""
    is_several: bool
    """Whether it takes several values."""
    initial: Any
    """The field's default; NODEFAULT where there is none."""
    is_positional: bool
    """Whether it has no flag."""
    heading: str
    """The heading in the help that it begins; empty: none."""

    @property
    def key(self) -> str:
        """The name in run files and flags."""
        return key_of(self.name)

    @property
    def flag(self) -> str:
        return f"--no-{self.key}" if self.initial is True and isinstance(self.kind, Switch) else f"--{self.key}"

    @property
    def is_required(self) -> bool:
        return self.initial is NODEFAULT

    @property
    def kind_in_file(self) -> ValueKind[Any]:
        return Several(self.kind) if self.is_several else self.kind

    @property
    def refusal_without(self) -> str:
        """The error message for a required option that is missing."""
        is_model = isinstance(self.kind, ModelName)
        expected = "at least one model as provider/model" if is_model else self.kind.expected
        return f"{self.flag}: expected {expected}, got none"


def key_of(name: str) -> str:
    """Returns the name of a field in run files and flags. One that is a word of Python ends with an underscore."""
    return name.rstrip("_").replace("_", "-")


# A command asks for the same options some forty times.
@lru_cache(maxsize=256)
def declared(struct: type[Struct], verb: str | None = None) -> tuple[DeclaredOption, ...]:
    """Returns the options of a struct in their order; with `verb`, those that this verb takes. Raises UsageError if
    a field's annotation has no kind."""
    try:
        fields = structs.fields(struct)
    except (NameError, TypeError) as error:
        raise UsageError(
            f"{_named(struct)}: its annotations can't be read ({error}): import what they name at run time"
        ) from error
    options = tuple(_declared(struct, field) for field in fields)
    return options if verb is None else tuple(option for option in options if verb in option.verbs)


class FlagReader(Generic[_T]):
    """Reads the text of a flag as one kind of value, for argparse."""

    def __init__(self, kind: ValueKind[_T]) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<FlagReader of {self.kind.expected}>"

    def __call__(self, text: str) -> _T:
        try:
            return values.read(self.kind, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


def flag(kind: ValueKind[_T]) -> FlagReader[_T]:
    """Returns the reader of a flag's text as this kind of value."""
    return FlagReader(kind)


def add_options(parser: argparse.ArgumentParser, struct: type[Struct]) -> None:
    """Adds a verb's options under their headings."""
    group: argparse._ActionsContainer = parser
    for option in declared(struct):
        if option.heading:
            group = parser.add_argument_group(option.heading)
        add_flags(group, (option,))


def add_flags(group: argparse._ActionsContainer, options: Iterable[DeclaredOption]) -> None:
    """Adds a flag or a place for each option. One that is not given is None, so that a file or a default decides."""
    for option in options:
        help_text = option.help.replace("%", "%%")
        if isinstance(option.kind, Switch):
            value = option.initial is not True
            group.add_argument(option.flag, dest=option.name, action="store_const", const=value, help=help_text)
            continue
        extra: dict[str, Any] = {"type": flag(option.kind), "metavar": option.metavar, "help": help_text}
        if option.is_positional:
            extra["nargs"] = _NARGS[option.is_several, option.is_required]
            group.add_argument(option.name, **extra)
            continue
        if option.is_several:
            extra |= {"action": "append"} if option.is_repeated else {"nargs": "+", "action": "extend"}
        group.add_argument(option.flag, dest=option.name, **extra)


def given_in(parsed: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Returns the values of the flags that were given, by field."""
    values_by_name = {name: getattr(parsed, name, None) for name in names}
    return {name: value for name, value in values_by_name.items() if value is not None}


def made_from(struct: type[_S], parsed: argparse.Namespace) -> _S:
    """Returns the struct from a verb's parsed options, with defaults for those that were not given. Raises UsageError
    if they don't go together."""
    return _checked(struct, given_in(parsed, struct.__struct_fields__))


def words_of(options: Iterable[DeclaredOption], arguments: Mapping[str, Any]) -> list[str]:
    """Returns these values as the words of a command: each flag, followed by its values."""
    words: list[str] = []
    for option in options:
        if option.name not in arguments:
            continue
        value = arguments[option.name]
        several = [] if isinstance(option.kind, Switch) else value if option.is_several else [value]
        words += [option.flag, *(_word(each) for each in several)]
    return words


def _word(value: Any) -> str:
    return NONE if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def words_kept(struct: type[Struct], kept: Mapping[str, Any]) -> list[str]:
    """Returns a manifest's values as the words of a command, without defaults and without the folders of its files."""
    options = declared(struct)
    arguments: dict[str, Any] = {}
    for option in options:
        value = kept.get(option.name)
        if value is None or value == option.initial or (option.is_several and not value):
            continue
        arguments[option.name] = Path(value).name if values.is_path(option.kind, value) else value
    return words_of(options, arguments)


def made_of(struct: type[_S], arguments: Mapping[str, Any], base: Path) -> _S:
    """Returns the struct with the given values, and defaults for the rest. Relative paths start at `base`; a value that
    is named twice counts once. Raises UsageError if the struct rejects a value."""
    settled = dict(arguments)
    for option in declared(struct):
        value = settled.get(option.name)
        if value is None:
            continue
        if option.is_several:
            settled[option.name] = tuple(dict.fromkeys(absolute_value(option, each, base) for each in value))
        else:
            settled[option.name] = absolute_value(option, value, base)
    return _checked(struct, settled)


def _checked(struct: type[_S], arguments: Mapping[str, Any]) -> _S:
    check_together(struct, arguments)
    try:
        return _converted(struct, arguments)
    except ValueError as error:
        at_field = _AT_FIELD.fullmatch(str(error))
        if at_field is None:
            raise UsageError(str(error)) from error
        problem, name = at_field.groups()
        raise UsageError(f"--{key_of(name)}: {problem[:1].lower()}{problem[1:]}") from error


def check_together(struct: type[Struct], names: Collection[str]) -> None:
    """Raises UsageError if a given option excludes another one, or is given without the one that it belongs to."""
    options = {option.name: option for option in declared(struct)}
    rivals: dict[str, list[DeclaredOption]] = {}
    for option in options.values():
        rivals.setdefault(option.one_of, []).append(option)
    chosen = {what: [option for option in several if option.name in names] for what, several in rivals.items() if what}
    for what, several in chosen.items():
        if len(several) > 1:
            flags = ", ".join(option.flag for option in rivals[what])
            wrong = " and ".join(option.flag for option in several)
            raise UsageError(f"expected one of {flags} as {what}, got {wrong}: leave one out")
    for option in options.values():
        if option.name not in names or not option.beside:
            continue
        what = options[option.beside[0]].one_of
        others = chosen[what] if what else [options[name] for name in option.beside if name in names]
        holding = others or (rivals[what][:1] if what else [])
        if not any(other.name in option.beside for other in holding):
            wanted = " or ".join(options[name].flag for name in option.beside)
            raise UsageError(f"{option.flag}: expected {_wrong_beside(option, wanted, others)}")


def _wrong_beside(option: DeclaredOption, wanted: str, chosen: Iterable[DeclaredOption]) -> str:
    """Returns what was expected beside an option and what stands there."""
    for other in chosen:
        if (why := option.barred.get(other.name)) is not None:
            return f"none beside {other.flag}, got one: {why}"
        return f"{wanted} beside it, got {other.flag}: leave one out"
    return f"{wanted} beside it, got none"


def kept_of(options: Struct) -> dict[str, Any]:
    """Returns the values by field name, as a manifest stores them."""
    fields = msgspec.to_builtins(options, enc_hook=str)
    assert isinstance(fields, dict)
    return {name: fields[name] for name in options.__struct_fields__}


def specified(options: Struct, struct: type[Struct], first: Collection[str]) -> dict[str, Any]:
    """Returns those of the options that are fields of `struct`, as a specification has them: the `first` ones always, a
    later one only if it is not the default, so that runs that began without it go on."""
    values_by_name = {each.name: (getattr(options, each.name), each.default) for each in structs.fields(struct)}
    return {
        name: msgspec.to_builtins(value)
        for name, (value, default) in values_by_name.items()
        if name in first or value != default
    }


def read_kept(struct: type[_S], kept: Mapping[str, Any]) -> _S:
    """Returns the struct from the values in a manifest. Missing fields have their defaults, unknown ones are ignored.
    Raises TypeError if the values don't fit."""
    try:
        return _converted(struct, kept)
    except ValueError as error:
        raise TypeError(str(error)) from error


def _converted(struct: type[_S], arguments: Mapping[str, Any]) -> _S:
    return msgspec.convert(arguments, struct, dec_hook=lambda wanted, value: wanted(value))


def absolute_value(option: DeclaredOption, value: Any, base: Path) -> Any:
    """Returns one value of an option; of a path the absolute one, which starts at `base` if it is relative. Raises
    UsageError if it names an unknown user's folder."""
    if not values.is_path(option.kind, value):
        return value
    try:
        return str((base / Path(value).expanduser()).absolute())
    except RuntimeError as error:
        raise UsageError(f"{option.flag}: expected {option.kind.expected}, got one of an unknown user") from error


def _declared(struct: type[Struct], field: structs.FieldInfo) -> DeclaredOption:
    plain, marks, is_several = _unwrapped(field.type)
    option = next((mark for mark in marks if isinstance(mark, Option)), Option())
    meta = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
    kind = option.kind or _kind_of(plain, field.name.replace("_", " "), meta)
    if kind is None:
        raise UsageError(
            f"{_named(struct)}.{field.name}: expected int, float, str, bool, Path, a Literal of words or a tuple of "
            f"one of them, got {field.type}: annotate it with an Option that has a kind"
        )
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    words = kind.metavar if isinstance(kind, WordChoice) and not is_several else ""
    decided = {
        "kind": kind,
        "metavar": words or option.metavar or key_of(field.name).upper(),
        "help": option.help or _help_of(meta, kind, default),
    }
    return DeclaredOption(
        name=field.name,
        is_several=is_several,
        initial=default,
        is_positional=isinstance(option, Positional),
        heading=next((mark.title for mark in marks if isinstance(mark, Heading)), ""),
        **{**structs.asdict(option), **decided},
    )


def _unwrapped(annotation: Any, is_several: bool = False) -> tuple[Any, list[Any], bool]:
    """Returns an annotation without `Annotated`, `| None` and `tuple[…, ...]`, the marks in `Annotated`, and whether it
    was a tuple."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        plain, marks, several = _unwrapped(inner[0], is_several)
        return plain, [*inner[1:], *marks], several
    if origin in (Union, UnionType) and len(rest := [each for each in inner if each is not NoneType]) == 1:
        return _unwrapped(rest[0], is_several)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis and not is_several:
        return _unwrapped(inner[0], is_several=True)
    return annotation, [], is_several


def _kind_of(plain: Any, name: str, meta: Meta) -> ValueKind[Any] | None:
    """Returns the kind of a plain annotation, within the bounds of its Meta; None if there is no kind for it."""
    if plain is bool:
        return Switch()
    if plain is int:
        above, below = (None if edge is None else edge + step for edge, step in ((meta.gt, 1), (meta.lt, -1)))
        return WholeNumber(name, int(_first(meta.ge, above, -_MOST)), int(_first(meta.le, below, _MOST)))
    if plain is float:
        return Number(f"a number ({name})", _first(meta.ge, meta.gt, -_MOST), _first(meta.le, meta.lt, _MOST))
    if plain is str:
        return ANY_TEXT
    if plain is Path:
        return FilePath("the path of a file or folder")
    words = get_args(plain) if get_origin(plain) is Literal else ()
    return WordChoice(words) if words and all(isinstance(word, str) for word in words) else None


def _first(*bounds: float | None) -> float:
    return next(bound for bound in bounds if bound is not None)


def _help_of(meta: Meta, kind: ValueKind[Any], default: Any) -> str:
    """Returns the help of a plain annotation: its description, allowed words and default."""
    text = meta.description or kind.expected
    if isinstance(kind, WordChoice) and meta.description:
        text += f": {', '.join(kind.words)}"
    if default in (NODEFAULT, None, (), "") or isinstance(default, bool):
        return text
    initial = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"{text} (default: {initial})"


def _named(struct: type[Struct]) -> str:
    return f"{struct.__module__}.{struct.__qualname__}"
