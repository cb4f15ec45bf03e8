"""The items by models that a report's page holds, unpacked: what its script reads."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from millstream.report.sections import PageContents


def packed_items(made: PageContents | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the table, and the texts by item, in a part of a page or in a page's file."""
    packs = made.packs if isinstance(made, PageContents) else dict(_PACK.findall(made.read_text("utf-8")))
    named = {name.rpartition("-")[2]: pack for name, pack in packs.items() if "-matrix-" in name}
    columns, texts = (gzip.decompress(base64.b64decode(named[name])) for name in ("data", "texts"))
    return whole_columns(columns), json.loads(texts)


def whole_columns(data: bytes) -> dict[str, Any]:
    """The columns of the table, with all numbers of a row of equal ones."""
    columns: dict[str, Any] = json.loads(data)
    for rows in (*columns["cells"].values(), *columns["figures"].values()):
        rows[:] = [row * len(columns["items"]) if len(row) == 1 else row for row in rows]
    return columns


_PACK = re.compile(r'<script type="text/plain" id="([^"]+)">([^<]*)</script>')
