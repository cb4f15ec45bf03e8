"""Finds the address and the API keys of a search engine in its own variables.

The variables are passed in; reads no environment. `--base-url` is for models and changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...engine.page_urls import is_address
from ..access import Access, ConfigurationError, ReachSettings, UnknownProvider
from ..credentials.authorizer import NO_CREDENTIALS
from ..kinds import Credentials, Kind, always
from ..llm.protocol import Target, WireProtocol
from .table import CORPUS, ENGINES, PROVIDER, SCHEME, SearchEngine

_PREFIX = f"{PROVIDER}/"


def _of_the_corpus(model: str) -> WireProtocol:
    raise ConfigurationError(f"{_PREFIX}{model} is asked by what lies in its folder: no key of it is known")


_CORPUS = Kind(_of_the_corpus, lambda credentials, target: NO_CREDENTIALS)


def is_search(model: str) -> bool:
    return model.startswith(_PREFIX)


def no_engine(name: str) -> SearchEngine | None:
    return None


def row_of(
    model: str,
    changed: Mapping[str, SearchEngine] = MappingProxyType({}),
    others: Callable[[str], SearchEngine | None] = no_engine,
) -> SearchEngine | None:
    """Returns the row of `search/NAME`; None for an unknown name, and for the corpus, which has no address. `changed`
    holds a configuration's engines by name; `others` is asked for a name that is neither there nor built in."""
    name = model.removeprefix(_PREFIX)
    if name == CORPUS:
        return None
    return changed.get(name) or ENGINES.get(name) or others(name)


def search_accesses(
    model: str,
    means: ReachSettings,
    changed: Mapping[str, SearchEngine] = MappingProxyType({}),
    others: Callable[[str], SearchEngine | None] = no_engine,
) -> tuple[Access, ...]:
    """Returns the accesses to one engine, one for each API key. Raises ConfigurationError if something is missing."""
    name = model.removeprefix(_PREFIX)
    if name == CORPUS:
        return (Access(Target(SCHEME, SCHEME, CORPUS, PROVIDER), _CORPUS, Credentials()),)
    row = row_of(model, changed, others)
    if row is None:
        engines = ", ".join(sorted([*ENGINES, CORPUS]))
        raise UnknownProvider(
            f"search {model!r}: no search engine {name!r}; known are {engines}, and any that an installed package names"
        )
    # A configuration's own address goes before a variable.
    base_url = (means.variables.get(row.url_variable, "").strip() or row.base_url).rstrip("/")
    if not base_url:
        raise ConfigurationError(f"search {model!r} has no address: set {row.url_variable}")
    if not is_address(base_url):
        # Not shown: it may hold a password.
        raise ConfigurationError(
            f"search {model!r}: {row.url_variable} must be an address such as http://127.0.0.1:8888, without a user, "
            f"password or query in it"
        )
    target = Target(base_url, row.identity or base_url, name, PROVIDER, project=_id_of(model, row, means))
    keys = _keys_of(model, row, means) if means.needs_keys and row.key_variables else {None: ""}
    kind = Kind(always(row.protocol), lambda credentials, target: row.authorizer(credentials.key))
    ways = tuple(Access(target, kind, Credentials(key), variable) for key, variable in keys.items())
    for access in ways:
        access.authorizer()
    return ways


def _id_of(model: str, row: SearchEngine, means: ReachSettings) -> str | None:
    if row.id_variable is None:
        return None
    engine_id = means.variables.get(row.id_variable, "").strip()
    if not engine_id and means.needs_keys:
        raise ConfigurationError(f"search {model!r} needs an id: set {row.id_variable}")
    return engine_id or None


def _keys_of(model: str, row: SearchEngine, means: ReachSettings) -> dict[str | None, str]:
    """Returns each API key of an engine with the variable that holds it: those of the variables that the lane names,
    else the first of the engine's own that is set. Raises ConfigurationError."""
    variables = means.key_variables.get(model)
    keys: dict[str | None, str] = {}
    for names in ((name,) for name in variables) if variables is not None else (row.key_variables,):
        variable = next((name for name in names if means.variables.get(name, "").strip()), None)
        if variable is None:
            raise ConfigurationError(f"search {model!r} needs a key: set {' or '.join(names)}")
        keys.setdefault(means.variables[variable].strip(), variable)
    return keys
