"""The search engines in the list of `models`: the API key and address each needs, whether they are set, price and
remarks.

Variables are listed by name, never with their contents.
"""

from __future__ import annotations

from typing import Any

from ...engine.page_urls import shown_address
from ...providers.search.table import CORPUS, ENGINES, PROVIDER, SearchEngine
from ...providers.table import PROVIDERS
from ...report.text import table
from ...wiring import Settings

_COLUMNS = ("search", "key", "address", "list price")


def searches(settings: Settings) -> list[dict[str, Any]]:
    """Returns the search engines as plain values. The corpus is always ready."""
    rows = {**ENGINES, **settings.searches}
    rows |= settings.others.all_searches((*rows, CORPUS))[0]
    corpus: dict[str, Any] = {
        "name": f"{PROVIDER}/{CORPUS}",
        "address": None,
        "address_variable": None,
        "variables": [],
        "id_variable": None,
        "set": [],
        "is_ready": True,
        "price": "free: documents on this machine",
        "limits": "none",
        "remark": "",
    }
    return [*(_engine(name, row, settings) for name, row in rows.items()), corpus]


def troubles_of_others(settings: Settings) -> list[str]:
    """Returns a line for each entry point of an installed package that can't be used."""
    providers = settings.others.all_providers((*PROVIDERS, *settings.providers))[1]
    return [*providers, *settings.others.all_searches((*ENGINES, CORPUS))[1]]


def _engine(name: str, row: SearchEngine, settings: Settings) -> dict[str, Any]:
    variables = settings.variables
    wanted = [*settings.key_variables.get(f"{PROVIDER}/{name}", row.key_variables)]
    names = [*wanted, *([row.id_variable] if row.id_variable else [])]
    are_set = [variable for variable in names if variables.get(variable, "").strip()]
    address = variables.get(row.url_variable, "").strip() or row.base_url
    has_key = not wanted or any(variable in are_set for variable in wanted)
    return {
        "name": f"{PROVIDER}/{name}",
        "address": shown_address(address) if address else None,
        "address_variable": row.url_variable or None,
        "variables": wanted,
        "id_variable": row.id_variable,
        "set": are_set,
        "is_ready": bool(address) and has_key and (row.id_variable is None or row.id_variable in are_set),
        "price": row.price,
        "limits": row.limits,
        "remark": row.remark,
    }


def tell(rows: list[dict[str, Any]]) -> str:
    """Returns the table, and a line for each engine that has a remark."""
    lines = [table([_COLUMNS, *map(_row, rows)], lean=(0, 1, 2, 3))]
    lines += [f"{row['name']}: {row['remark']}" for row in rows if row["remark"]]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    address = row["address"] or (f"{row['address_variable']}: not set" if row["address_variable"] else "--corpus DIR")
    return row["name"], _key_of(row), address, row["price"]


def _key_of(row: dict[str, Any]) -> str:
    texts = []
    if row["variables"]:
        keys = [variable for variable in row["variables"] if variable in row["set"]]
        texts.append(f"{keys[0]}: set" if keys else f"{' or '.join(row['variables'])}: not set")
    if row["id_variable"]:
        texts.append(f"{row['id_variable']}: {'set' if row['id_variable'] in row['set'] else 'not set'}")
    return "; ".join(texts) or "none needed"
