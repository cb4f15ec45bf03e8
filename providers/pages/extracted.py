"""What extraction makes of a page, as it is passed between processes and kept. Knows no parser."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TEXT_MAX = 400_000

ExtractedStatus = Literal["ok", "empty", "too_large", "not_text", "timeout"]


class Extracted(Struct, frozen=True, array_like=True):
    """A page's text, or why there is none. `detail` may stand beside a text: what was left out of it."""

    status: ExtractedStatus
    text: str = ""
    title: str = ""
    detail: str = ""
