"""Data for a page's scripts, as one text that can stand in it: JSON, compressed, in base64."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import msgspec


def packed(value: Any) -> str:
    """Returns the text; the same value gives the same one."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), compresslevel=9, mtime=0)).decode("ascii")
