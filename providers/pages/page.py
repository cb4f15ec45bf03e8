"""A page at three stages: a hop as the engine stores it, the text that extraction finds, and the page that was read.

Pure; knows no parser. Every source of pages stores them in this form, so one reader and one export understand them all.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from msgspec import Struct

from ...engine.call import PageResponse, Reply
from ...engine.endpoint import Response

TEXT_MAX = 400_000
CONTENT_TYPE, CONTENT_ENCODING, LOCATION = "content-type", "content-encoding", "location"

TextStatus = Literal["ok", "empty", "too_large", "not_text", "timeout"]
PageStatus = Literal["ok", "blocked", "empty", "too_large", "not_text", "timeout", "disallowed", "unreachable"]


class PageText(Struct, frozen=True, array_like=True):
    """The text of a page, or why it has none. If there is a text, `detail` says what was left out of it."""

    status: TextStatus
    text: str = ""
    title: str = ""
    detail: str = ""


class Page(Struct, frozen=True):
    """A page that was read, or why it has no text."""

    url: str
    """The address that was requested."""
    status: PageStatus
    """`ok`, or one word for why there is no text."""
    text: str = ""
    """The page's text."""
    title: str = ""
    """The page's title."""
    final_url: str = ""
    """The address after redirects."""
    hash: str = ""
    """SHA-256 of the body, in hex."""
    detail: str = ""
    """Why there is no text, or what was left out of it."""
    keys: tuple[str, ...] = ()
    """The cache keys of its calls."""
    cached: bool = False
    """Whether all its calls were answered from the cache."""


def response_of(fetched: PageResponse) -> Response:
    """Returns a hop as a response in the form that the engine stores."""
    headers = {CONTENT_TYPE: fetched.content_type, CONTENT_ENCODING: fetched.encoding, LOCATION: fetched.location}
    return Response(fetched.status, fetched.body, headers={name: value for name, value in headers.items() if value})


def fetched_of(response: Response) -> PageResponse:
    """Returns the hop that a stored response holds."""
    headers = response.headers
    content_type, encoding = headers.get(CONTENT_TYPE, ""), headers.get(CONTENT_ENCODING, "")
    return PageResponse(response.status, content_type, encoding, headers.get(LOCATION), response.body)


def reply_of(response: Response) -> Reply:
    """Returns a stored response as the reply to a call."""
    return Reply("", raw_hash=sha256(response.body).hexdigest(), fetched=fetched_of(response))
