"""Decodes the answers of all search engines: bytes in, hits or a fault out, never an exception.

Each engine's module gives the layout of its JSON; `faults` decides what an error means. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec import Struct

from ...engine.call import Reply
from ...engine.endpoint import Fault, Response
from ..llm.errors import ErrorBody
from ..llm.faults import bad_json, unreadable
from ..llm.repair import read_object
from .faults import error_in_answer, error_in_text, search_fault
from .results import hits_of

Object = dict[str, Any]
LAST = "stop"
MORE = "more"


def no_remarks(answer: Object) -> tuple[str, ...]:
    return ()


def not_stated(answer: Object) -> bool | None:
    return None


class AnswerLayout(Struct, frozen=True):
    """The layout of an engine's JSON: where its results are, the names of a result's fields, and how errors look.

    `rows` returns the results, None if the answer is not one of this engine's. `has_more` returns whether there is
    another page, None if the answer does not say. `remarks` returns notes on a sound answer, beside its hits. `fails`
    returns the fault of an answer that only looks sound, else None.
    """

    rows: Callable[[Object], list[Any] | None]
    url: str
    title: str
    snippet: str
    error: Callable[[Object], ErrorBody | None] = error_in_answer
    fault: Callable[[Response, ErrorBody], Fault] = search_fault
    has_more: Callable[[Object], bool | None] = not_stated
    remarks: Callable[[Object], tuple[str, ...]] = no_remarks
    fails: Callable[[Object, list[Any]], Fault | None] = lambda answer, rows: None

    def decode(self, response: Response) -> Reply | Fault:
        """Returns hits or a fault. The reply's `text` holds remarks; its finish reason is `stop` on the last page,
        `more` on any other, None if that is unknown."""
        body = response.body
        answer, is_strict = read_object(body)
        if response.status != 200:
            error = None if answer is None else self.error(answer)
            return self.fault(response, error or error_in_text(body))
        if answer is None:
            return unreadable(body)
        if (engine_error := self.error(answer)) is not None:
            return self.fault(response, engine_error)
        rows = self.rows(answer)
        if rows is None:
            return bad_json("200 with JSON that holds no results")
        if (fault := self.fails(answer, rows)) is not None:
            return fault
        hits, dropped = hits_of(rows, self.url, self.title, self.snippet)
        remarks = self.remarks(answer)
        if dropped:
            remarks = (*remarks, f"{dropped} of {len(rows)} results without an address of a page left out")
        has_more = self.has_more(answer)
        finish = None if has_more is None else MORE if has_more else LAST
        raw = None if is_strict else body
        return Reply("; ".join(remarks), None, finish, raw_hash=sha256(body).hexdigest(), raw=raw, hits=hits)


def list_at(answer: Object, *path: str) -> list[Any] | None:
    """Returns the list at the end of a path of names, None if there is none."""
    value: Any = answer
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else None
