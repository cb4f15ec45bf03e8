"""A provider's own list of its models, and what it says that the table of models does not.

Owns the addresses and the shapes of the lists. Opens nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from ..engine.endpoint import Request, send
from .models import ModelTable
from .transport.endpoint import ModelEndpoint

# By family of wire protocols; OpenAI's addresses have their version in them.
_PATHS = {"openai": "/models", "anthropic": "/v1/models?limit=1000", "gemini": "/v1beta/models?pageSize=1000"}
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")


async def list_models(endpoint: ModelEndpoint, protocol: str) -> dict[str, str | None]:
    """Returns the names in a provider's list of models, with the last day of each (None: none is given); empty for a
    protocol without a list. Raises SendError, or ValueError for an answer that is no list."""
    if (path := _PATHS.get(protocol.partition("-")[0])) is None:
        return {}
    base = endpoint.base_url if path == "/models" else _VERSION.sub("", endpoint.base_url)
    response = await send(endpoint, Request(f"{base}{path}", "", b"", b"", b"", b"", method="GET"))
    answer = orjson.loads(response.body)
    rows = (answer.get("data") or answer.get("models")) if isinstance(answer, dict) else None
    if response.status != 200 or not isinstance(rows, list):
        raise ValueError(f"status {response.status}, and no list of models")
    named = [(row.get("id") or row.get("name"), row.get("shutdown_date")) for row in rows if isinstance(row, dict)]
    return {str(name).removeprefix("models/"): None if last is None else str(last) for name, last in named}


def differences(provider: str, listed: Mapping[str, str | None], table: ModelTable, day: str) -> Iterator[str]:
    """Yields a line for each kind of difference between a provider's list and its rows of the table on a day."""
    rows = {f"{provider}/{name}": table.row(f"{provider}/{name}") for name in listed}
    present = {id(row) for row in rows.values()}
    kinds = {
        "in the table of models, and not in its list": [
            name
            for name, row in table.models.items()
            if name.startswith(f"{provider}/") and id(row) not in present and (row.retires or "9999") > day
        ],
        "with another last day in its list": [
            f"{name} ({last}; in the table {row.retires or 'none'})"
            for (name, row), last in zip(rows.items(), listed.values(), strict=True)
            if row is not None and last is not None and last != row.retires
        ],
        # Others offer hundreds of vendors' models.
        "in its list, and without a row": [
            name for name, row in rows.items() if row is None and provider in table.vendors
        ],
    }
    for kind, names in kinds.items():
        if names:
            yield f"{provider}: {kind}: {', '.join(names)}"
