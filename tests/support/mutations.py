"""Sound JSON with something odd in one place or two: what a wrong client sends is mostly right."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

_TEXT = st.text(max_size=5) | st.text(st.characters(codec=None, categories=None), max_size=3)  # also half characters
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_Path = tuple[str | int, ...]


def paths_in(value: Any, path: _Path = ()) -> Iterator[_Path]:
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in places:
        yield (*path, name)
        yield from paths_in(inner, (*path, name))


@st.composite
def mutated(draw: st.DrawFn, bodies: Sequence[Any]) -> Any:
    body = copy.deepcopy(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(1, 2))):
        paths = list(paths_in(body))
        if not paths:
            break
        *outer, name = draw(st.sampled_from(paths))
        holder = body
        for step in outer:
            holder = holder[step]
        kind = draw(st.sampled_from(("other", "gone", "more")))
        if kind == "gone":
            del holder[name]
        elif kind == "more" and isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = draw(JSON)
        else:
            holder[name] = draw(JSON)
    return body
