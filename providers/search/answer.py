"""From a search engine's bytes to hits or a fault: the one way that all engines' answers take.

An engine's own module says where in its JSON the results stand and how it tells errors. What a fault means: faults.
Pure: bytes in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec import Struct

from ...engine.call import Reply
from ...engine.endpoint import Fault, Response
from ..llm.faults import bad_json
from ..llm.repair import is_strict, object_of, parse_leniently
from .faults import Told, search_fault, told_by
from .results import hits_of

Object = dict[str, Any]
LAST = "stop"
MORE = "more"


def no_remarks(answer: Object) -> tuple[str, ...]:
    return ()


def nobody_says(answer: Object) -> bool | None:
    return None


class Reading(Struct, frozen=True):
    """`rows`: the results; None where the answer is not one of this engine's. `has_more`: whether there is another page
    of them; None where nobody says. `remarks`: what else is to be told of an answer that is sound. `fails`: a fault
    that looks like an answer."""

    rows: Callable[[Object], list[Any] | None]
    url: str
    title: str
    snippet: str
    told: Callable[[Object], Told | None] = told_by
    fault: Callable[[Response, Told], Fault] = search_fault
    has_more: Callable[[Object], bool | None] = nobody_says
    remarks: Callable[[Object], tuple[str, ...]] = no_remarks
    fails: Callable[[Object, list[Any]], Fault | None] = lambda answer, rows: None


def answer_of(response: Response, reading: Reading) -> Reply | Fault:
    """`text` of the reply holds remarks; its finish reason is `stop` on the last page, `more` before it."""
    body = response.body
    answer = object_of(parse_leniently(body))
    if response.status != 200:
        error = None if answer is None else reading.told(answer)
        return reading.fault(response, error or Told.of_text(body))
    if answer is None:
        return bad_json(f"200 with JSON that {'ends in the middle or is none' if body else 'is empty'}")
    if (told := reading.told(answer)) is not None:
        return reading.fault(response, told)
    rows = reading.rows(answer)
    if rows is None:
        return bad_json("200 with JSON that holds no results")
    if (fault := reading.fails(answer, rows)) is not None:
        return fault
    hits, dropped = hits_of(rows, reading.url, reading.title, reading.snippet)
    remarks = reading.remarks(answer)
    if dropped:
        remarks = (*remarks, f"{dropped} of {len(rows)} results without an address of a page left out")
    has_more = reading.has_more(answer)
    finish = None if has_more is None else MORE if has_more else LAST
    raw = None if is_strict(body) else body
    return Reply("; ".join(remarks), None, finish, raw_hash=sha256(body).hexdigest(), raw=raw, hits=hits)


def listed(answer: Object, *path: str) -> list[Any] | None:
    """The list at the end of a path of names; None where there is none."""
    value: Any = answer
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else None
