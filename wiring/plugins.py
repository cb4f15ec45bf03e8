"""Providers, search engines, sinks and benchmarks of other installed packages, found by their entry points.

It looks only for names that are not ours, since reading the list of packages takes longer than most commands; results
are kept with the settings. No package is trusted to work: an error in one is reported in a line that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from ..engine.page_urls import with_shown_addresses
from ..engine.sink import Sink
from ..providers.access import ConfigurationError
from ..providers.kinds import KINDS
from ..providers.search.table import SearchEngine
from ..providers.table import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROVIDERS = "millstream.providers"
SEARCHES = "millstream.searches"
SINKS = "millstream.sinks"
BENCHMARKS = "millstream.benchmarks"
_WANTED = {
    PROVIDERS: "a millstream.Provider",
    SEARCHES: "a millstream.SearchEngine",
    SINKS: "a function that takes a text and gives a millstream.Sink",
    BENCHMARKS: "a millstream.ItemBenchmark",
}

_T = TypeVar("_T")


class Others:
    """Providers, search engines and sinks of installed packages, for the engines of one set of settings."""

    def __init__(self) -> None:
        self._offered: dict[str, dict[str, list[EntryPoint]]] = {}
        self._loaded: dict[tuple[str, str], object] = {}

    def __repr__(self) -> str:
        return f"<Others [{', '.join(self._offered) or 'not looked for'}]>"

    def provider(self, name: str) -> Provider | None:
        row = self._checked(PROVIDERS, name, Provider)
        if row is not None and isinstance(row.kind, str) and row.kind not in KINDS:
            raise ConfigurationError(
                f"{_named(self._points(PROVIDERS)[name][0])} has the kind {row.kind!r}; known are {', '.join(KINDS)}, "
                f"or a millstream.Kind of its own"
            )
        return row

    def search(self, name: str) -> SearchEngine | None:
        return self._checked(SEARCHES, name, SearchEngine)

    def sink(self, name: str) -> Callable[[str], Sink]:
        made = self.load(SINKS, name)
        if made is None:
            names = ", ".join(sorted(self._points(SINKS))) or "none"
            raise ConfigurationError(
                f"no sink {name!r}: installed packages offer {names}; one is an entry point of the group {SINKS}"
            )
        if not callable(made):
            raise self._wrong(SINKS, name, made)
        return made

    def package_of(self, group: str, name: str) -> str:
        return _package_of(self._points(group)[name][0])

    def all_providers(self, known: Sequence[str]) -> tuple[dict[str, Provider], list[str]]:
        """Returns providers whose names are not in `known`, and a line for each that can't be used."""
        return self._all(PROVIDERS, known, self.provider)

    def all_searches(self, known: Sequence[str]) -> tuple[dict[str, SearchEngine], list[str]]:
        return self._all(SEARCHES, known, self.search)

    def _all(
        self, group: str, our_names: Sequence[str], find: Callable[[str], _T | None]
    ) -> tuple[dict[str, _T], list[str]]:
        rows: dict[str, _T] = {}
        troubles = []
        for name in sorted(self._points(group)):
            if name in our_names:
                troubles.append(f"{_named(self._points(group)[name][0])} is not used: millstream has one of this name")
                continue
            try:
                row = find(name)
            except ConfigurationError as error:
                troubles.append(str(error))
            else:
                assert row is not None
                rows[name] = row
        return rows, troubles

    def _checked(self, group: str, name: str, wanted: type[_T]) -> _T | None:
        made = self.load(group, name)
        if made is not None and not isinstance(made, wanted):
            raise self._wrong(group, name, made)
        return made

    def load(self, group: str, name: str) -> object:
        """Returns the object of an entry point, loading it first if needed; None: there is none of this name."""
        if (group, name) not in self._loaded:
            points = self._points(group).get(name)
            if points is None:
                return None  # and not kept: clients of a gateway may ask for any number of names
            if len(points) > 1:
                packages = " and ".join(sorted(_package_of(point) for point in points))
                raise ConfigurationError(f"{name!r} is offered in {group} by {packages}: remove one of them")
            self._loaded[group, name] = self._loaded_from(points[0])
        return self._loaded[group, name]

    def _points(self, group: str) -> dict[str, list[EntryPoint]]:
        if group not in self._offered:
            from importlib.metadata import entry_points  # here, since only names that are not ours need it

            offered: dict[str, list[EntryPoint]] = {}
            for point in entry_points(group=group):
                offered.setdefault(point.name, []).append(point)
            self._offered[group] = offered
        return self._offered[group]

    def _wrong(self, group: str, name: str, made: object) -> ConfigurationError:
        point = self._points(group)[name][0]
        return ConfigurationError(
            f"{_named(point)} is of type {type(made).__name__}; it must be {_WANTED[group]}: correct or remove it"
        )

    @staticmethod
    def _loaded_from(point: EntryPoint) -> object:
        try:
            made = point.load()
        except (Exception, SystemExit) as error:
            raise ConfigurationError(
                f"{_named(point)} can't be loaded ({in_one_line(error)}): repair or remove that package"
            ) from error
        if made is None:
            raise ConfigurationError(f"{_named(point)} is None; it must be {_WANTED[point.group]}")
        return made


@cache
def benchmark_of_packages(name: str) -> object:
    """Returns the object registered under this name, unchecked; None: there is none. Looks once in a process."""
    return Others().load(BENCHMARKS, name)


def in_one_line(error: BaseException) -> str:
    """Returns an error of other people's code as one line of bounded length."""
    text = with_shown_addresses(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text:.300}" if text else type(error).__name__


def _package_of(point: EntryPoint) -> str:
    return "an installed package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _named(point: EntryPoint) -> str:
    return f"{point.name!r}, which {_package_of(point)} offers in {point.group} as {point.value},"
