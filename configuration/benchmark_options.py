"""The options of benchmarks, as the command line and run files take them.

Owns which benchmark a flag belongs to and which options all share. Knows no benchmark by name; builds nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, structs

from . import values
from .declared_options import (
    DeclaredOption,
    Option,
    add_flags,
    declared,
    given_in,
    kept_of,
    made_of,
    read_kept,
    words_of,
)
from .errors import UsageError
from .options import SendingOptions
from .values import FilePath, ModelName, ValueKind, WholeNumber

MODEL = Option(ModelName(), "PROVIDER/MODEL", "who is asked; several after one flag, or the flag several times")
TEMPERATURE = Option(values.TEMPERATURE, "T", "ask at each of these; none: send none (default: {each})")
EFFORT = Option(values.EFFORT, "LEVEL", "ask at each of these, as none, low, high (default: {each})")
JUDGE_EFFORT = Option(values.EFFORT, "LEVEL", "the judge's, as none, low, high (default: not sent)")
MAX_TOKENS = Option(WholeNumber("tokens an answer", 1, 100_000_000), "N", "tokens of an answer (default: {each})")
DATASET = Option(
    FilePath("the path of a data set"), "PATH", "a data set's file or folder (default: the {any} that come with this)"
)
READ = Option(
    help="a model of which the server read more than half of the long prompts in part: unscored (default), or literal, "
    "remarked only (no answer depends on it)",
)
_FIRST = ("model", "temperature", "reasoning_effort", "max_tokens", "dataset")
_NEEDED = ("model", "temperature", "max_tokens")
_OF_VERBS = (
    "counts",
    "folders",
    "help",
    "json",
    "no_cache_check",
    "no_progress",
    "no_report",
    "forecast_workers",
    "pilot",
)
_OF_RUNS = ("name", "out", "sending", "what")
TAKEN = frozenset((*SendingOptions.__struct_fields__, *_OF_VERBS, *_OF_RUNS))
"""Names that the verbs have for options of their own."""


class SharedOptions(Struct, frozen=True, kw_only=True):
    """The options that every benchmark has. A benchmark with more options extends this struct."""

    model: Annotated[tuple[str, ...], MODEL]
    """The models that are asked."""
    temperature: Annotated[tuple[float | None, ...], TEMPERATURE.by_default("not sent")] = ()
    """The temperatures that each is asked at; empty or None: not sent."""
    reasoning_effort: Annotated[tuple[str, ...], EFFORT.by_default("not sent")] = ()
    """The reasoning efforts that each is asked at, in the provider's words; empty: not sent."""
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("not sent")] = None
    """The most tokens of an answer; None: not sent."""


class RunOptions(Struct, frozen=True):
    """The benchmark of a run, with the values of its options and readings."""

    benchmark: str
    """The benchmark's name."""
    options: Any
    """A struct of the benchmark's options."""
    readings: Any
    """A struct of its readings."""


class Declaration(Struct, frozen=True):
    """The options that a benchmark declares."""

    name: str
    """The word for it on the command line."""
    title: str
    """Its name in a sentence."""
    options: type[Struct]
    """The struct of what decides prompts and answers."""
    readings: type[Struct]
    """The struct of how records are read."""
    prompts: str = ""
    """The prompts that a load test takes from its data sets, in words. Empty: it has none for load tests."""
    data: Any = None
    """Its DataCommand, for `data` followed by its name. None: it does not offer it."""

    def taken_by(self, verb: str) -> tuple[DeclaredOption, ...]:
        """Returns the options that a verb takes: for `run` all of them, shared ones first; for the others the
        readings. A reading with the name of an option is left out of a run's."""
        options: tuple[DeclaredOption, ...] = ()
        readings = declared(self.readings, verb)
        if verb == "run":
            options = tuple(sorted(declared(self.options), key=lambda option: option.name not in _FIRST))
            readings = self._readings_of_run()
            self._check(options)
        for option in (*options, *readings):
            if option.key.replace("-", "_") in TAKEN:
                raise UsageError(f"benchmark {self.name}: {verb} has a {option.flag} of its own: rename the option")
        for reading in readings:
            if reading.is_required:
                raise UsageError(f"benchmark {self.name}: its reading {reading.name} has no default: give it one")
        return (*options, *readings)

    def made_of(self, given: Mapping[str, Any], base: Path) -> RunOptions:
        """Returns the options of a run from given values by field name; relative paths start at `base`. Raises
        UsageError if a value is missing or invalid."""
        for option in self.taken_by("run"):
            if option.is_required and option.name not in given:
                raise UsageError(option.refusal_without)
        options, readings = ({name: given[name] for name in names if name in given} for names in self._names())
        return RunOptions(self.name, made_of(self.options, options, base), made_of(self.readings, readings, base))

    def kept_of(self, run: RunOptions) -> dict[str, Any]:
        """Returns the values of a run's options and readings by name, as its manifest stores them."""
        values = {**kept_of(run.readings), **kept_of(run.options)}
        return {name: values[name] for names in self._names() for name in names}

    def read_kept(self, kept: Mapping[str, Any]) -> RunOptions:
        """Returns the run from the values in a manifest. Raises TypeError if they are not this benchmark's."""
        options, readings = ({name: kept[name] for name in names if name in kept} for names in self._names())
        return RunOptions(self.name, read_kept(self.options, options), read_kept(self.readings, readings))

    def is_reading(self, name: str) -> bool:
        """Whether an option of a run changes no answer."""
        return name not in self.options.__struct_fields__

    def _check(self, options: Iterable[DeclaredOption]) -> None:
        names = {option.name for option in options}
        if lacking := [name for name in _NEEDED if name not in names]:
            raise UsageError(
                f"benchmark {self.name}: its options have no field {' and '.join(lacking)}: extend "
                "millstream.SharedOptions"
            )

    def _readings_of_run(self) -> tuple[DeclaredOption, ...]:
        return tuple(option for option in declared(self.readings, "run") if self.is_reading(option.name))

    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the field names of `options`, and those of the run's `readings` that are not in `options` too."""
        return self.options.__struct_fields__, tuple(option.name for option in self._readings_of_run())


Known = Mapping[str, Declaration]


class _AnyOf(Struct, frozen=True):
    """The kind of value that any of several kinds accepts, used until the benchmark is known."""

    kinds: tuple[ValueKind[Any], ...]

    @property
    def expected(self) -> str:
        return ", or ".join(kind.expected for kind in self.kinds)

    def read(self, value: object) -> Any:
        for kind in self.kinds:
            try:
                return kind.read(value)
            except (ValueError, OverflowError):
                continue
        raise ValueError(value)


class _Flag(Struct, frozen=True):
    """A flag, and the benchmarks that take it."""

    option: DeclaredOption
    owners: tuple[str, ...]
    is_reading: bool


def add_benchmarks(parser: argparse.ArgumentParser, benchmarks: Known, named: str | None = None) -> None:
    """Adds the flags of a run, in a group for each set of benchmarks that take them. If one benchmark is named, the
    help leaves out flags that only others take, and a flag that several declare is read by its declaration."""
    groups: dict[str, list[_Flag]] = {}
    for each in _flags(benchmarks, "run", named):
        groups.setdefault(_title(each, benchmarks, named), []).append(each)
    for title, flags in groups.items():
        group = parser.add_argument_group(title)
        add_flags(group, (each.option for each in flags))
        if named is not None and named not in flags[0].owners:
            for action in group._group_actions:
                action.help = argparse.SUPPRESS


def add_readings(parser: argparse.ArgumentParser, benchmarks: Known, verb: str) -> None:
    """Adds the flags of a verb that reads records again."""
    groups: dict[tuple[str, ...], list[DeclaredOption]] = {}
    for each in _flags(benchmarks, verb):
        groups.setdefault(each.owners, []).append(each.option)
    for owners, options in groups.items():
        titles = listed([f"{benchmarks[name].title}'s" for name in owners], "and")
        add_flags(parser.add_argument_group(f"of {titles} records"), options)


def given_to(parsed: argparse.Namespace, benchmarks: Known, verb: str) -> dict[str, Any]:
    """Returns the values of the benchmark flags that stand on the command line, by field name. Flags of every known
    benchmark that the command `verb` takes are looked at; those not given are left out."""
    return given_in(parsed, (each.option.name for each in _flags(benchmarks, verb)))


def words_given(parsed: argparse.Namespace, benchmarks: Known, verb: str) -> list[str]:
    """Returns the benchmarks' flags that were given, with their values, as the words of a command."""
    return words_of((each.option for each in _flags(benchmarks, verb)), given_to(parsed, benchmarks, verb))


def foreign_to(benchmark: str, names: Iterable[str], benchmarks: Known, verb: str) -> tuple[str, Declaration] | None:
    """Returns the first flag that this benchmark does not take, and a benchmark that takes it; None if it takes them
    all."""
    for name in names:
        owners = {
            one.name: option for one in benchmarks.values() for option in one.taken_by(verb) if option.name == name
        }
        if benchmark not in owners:
            owner, option = next(iter(owners.items()))
            return option.flag, benchmarks[owner]
    return None


def _flags(benchmarks: Known, verb: str, named: str | None = None) -> list[_Flag]:
    """Returns every flag that a verb takes once, in the order of the benchmarks; one that several declare as `named`
    does, the benchmark that is asked for (None: it is not known yet)."""
    owned: dict[str, dict[str, DeclaredOption]] = {}
    for declaration in benchmarks.values():
        for option in declaration.taken_by(verb):
            owned.setdefault(option.name, {})[declaration.name] = option
    return [_flag(by_owner, named, benchmarks) for by_owner in owned.values()]


def _flag(by_owner: Mapping[str, DeclaredOption], named: str | None, benchmarks: Known) -> _Flag:
    """Returns the flag of an option: as the named benchmark declares it, else as all that have it do."""
    options = by_owner if named is None or named not in by_owner else {named: by_owner[named]}
    owner, option = next(iter(options.items()))
    kinds = tuple(dict.fromkeys(each.kind for each in options.values()))
    kind = kinds[0] if len(kinds) == 1 else _AnyOf(kinds)
    is_reading = benchmarks[owner].is_reading(option.name)
    return _Flag(structs.replace(option, kind=kind, help=_help_of(options)), tuple(by_owner), is_reading)


def _help_of(options: Mapping[str, DeclaredOption]) -> str:
    """Returns the help of an option; if benchmarks explain it differently, the explanations of all."""
    helps: dict[str, dict[str, str]] = {}
    for name, option in options.items():
        helps.setdefault(option.help, {})[name] = option.default
    texts = []
    for text, defaults in helps.items():
        each = "; ".join(default if len(options) == 1 else f"{name}: {default}" for name, default in defaults.items())
        filled = text.replace("{each}", each).replace("{any}", listed(list(defaults.values()), "or"))
        texts.append(filled if len(helps) == 1 else f"{listed(list(defaults), 'and')}: {filled}")
    return "; ".join(texts)


def _title(flag: _Flag, benchmarks: Known, named: str | None) -> str:
    if named is not None and named in flag.owners:
        names, whose = named, "its"
    elif len(flag.owners) == 1:
        names, whose = f"{flag.owners[0]} alone", "its"
    else:
        names, whose = listed(flag.owners, "and"), "their"
    if flag.is_reading:
        return f"{names}: how {whose} scores are read (no answer depends on it)"
    if len(flag.owners) == len(benchmarks):
        return f"what is asked, of {'both benchmarks' if len(benchmarks) == 2 else 'every benchmark'}"
    return names


def listed(words: Sequence[str], joined_by: str) -> str:
    """Returns words as a list in a sentence: `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} {joined_by} {last}" if most else last
