"""A page that was read, or why it gave nothing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PageStatus = Literal["ok", "blocked", "empty", "too_large", "not_text", "timeout", "disallowed", "unreachable"]


class Page(Struct, frozen=True):
    """`url` as it was asked for, `final_url` where redirects led, `hash` the SHA-256 of the body that came, in hex.
    `detail` says why there is no text, or what was left out of it. `keys` are those of every call that was made for it;
    `cached`: nothing was sent."""

    url: str
    status: PageStatus
    text: str = ""
    title: str = ""
    final_url: str = ""
    hash: str = ""
    detail: str = ""
    keys: tuple[str, ...] = ()
    cached: bool = False
