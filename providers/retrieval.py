"""The lanes of searches and pages: their names, their polite or documented defaults, and the price of a search.

Pure: reads no configuration and opens nothing.
"""

from __future__ import annotations

from msgspec import structs

from ..engine.call import WEB
from ..engine.lane import Lane
from ..engine.prices import ListedPrice, Price, PriceSource
from .search.access import is_search
from .search.table import CORPUS, ENGINES, PROVIDER, READ_ON, SearchEngine, engine_of

# Of all pages together.
PAGES_CONCURRENCY = 64
HOST_CONCURRENCY = 2
HOST_SPACING_S = 1.0
CORPUS_LANE = f"{PROVIDER}/{CORPUS}"
# Documents of the corpus have no host.
NO_HOST = f"{WEB}/"
# The name under which the default lane of every host is declared.
EVERY_HOST = f"{WEB}/*"


def is_page(lane: str) -> bool:
    return lane == WEB or lane.startswith(NO_HOST)


def is_host(lane: str) -> bool:
    return lane.startswith(NO_HOST) and lane != NO_HOST


def lane_of(name: str, declared: Lane | None, engine: SearchEngine | None = None) -> Lane:
    """Returns the lane of a search engine, of a host, or of all pages together: the declared values, and polite or
    documented defaults for the others. `engine` is the row of an engine that is not built in."""
    if is_search(name):
        row = engine_of(name) or engine
        default = Lane(name, concurrency=8) if row is None else structs.replace(row.lane, model=name)
    elif name == WEB:
        default = Lane(WEB, concurrency=PAGES_CONCURRENCY)
    elif name == NO_HOST:
        default = Lane(name)
    else:
        default = Lane(name, concurrency=HOST_CONCURRENCY, spacing_s=HOST_SPACING_S)
    return default if declared is None else _over(declared, default)


def _over(declared: Lane, default: Lane) -> Lane:
    """Returns the declared lane, with the default's values where none are set. A declared `rpm` replaces spacing."""
    plain = Lane(declared.model)
    values = {name: getattr(declared, name) for name in ("model", "rpm", "concurrency", "timeout_s")}
    are_set = {name: value for name, value in values.items() if name == "model" or value != getattr(plain, name)}
    return structs.replace(default, **are_set, spacing_s=default.spacing_s if declared.rpm is None else 0.0)


def search_prices() -> dict[str, ListedPrice]:
    """Returns the price of one request to each search engine, by its lane, from the engine's own price list."""
    listed = {
        f"{PROVIDER}/{name}": ListedPrice(price_of(row), PriceSource(READ_ON, row.price))
        for name, row in ENGINES.items()
    }
    return {**listed, CORPUS_LANE: ListedPrice(Price(0.0, 0.0), PriceSource(READ_ON, "free: a folder of your own"))}


def price_of(row: SearchEngine) -> Price:
    return Price(0.0, 0.0, call=row.dollars_per_1000 / 1000)
