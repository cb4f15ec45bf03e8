"""Pages that nobody here wrote: the documentation of this machine's packages, or of any folder.

`make pages` reads all there are and tells the figures; MILLSTREAM_PAGES names other folders, parted by colons.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter
from pathlib import Path

import pytest
from loops import run_on

from millstream.engine.call import PageResponse
from millstream.providers.pages.connections import PageConnection
from millstream.providers.pages.extraction import Extraction
from millstream.providers.pages.page import PageText

# The program's own workers.
pytestmark = pytest.mark.process

FOLDERS = os.environ.get("MILLSTREAM_PAGES", "/usr/share/doc")
COUNT = int(os.environ.get("MILLSTREAM_PAGES_MAX", "60"))
TYPES = {".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".pdf": "application/pdf"}


def pages() -> list[Path]:
    """Spread evenly over all there are, so that no one package stands for all."""
    found = [
        path
        for folder in FOLDERS.split(":")
        for path in sorted(Path(folder).rglob("*"))
        if path.suffix in TYPES or (path.suffix == ".gz" and Path(path.stem).suffix in TYPES)
    ]
    found = [path for path in found if path.is_file() and 0 < path.stat().st_size <= PageConnection.body_max]
    step = max(1.0, len(found) / COUNT)
    return [found[int(place * step)] for place in range(min(COUNT, len(found)))]


def fetched(path: Path) -> PageResponse:
    data = path.read_bytes()
    if path.suffix == ".gz":
        return PageResponse(200, TYPES[Path(path.stem).suffix], "gzip", None, data)
    return PageResponse(200, TYPES[path.suffix], "", None, data)


@pytest.mark.long
def test_real_pages_give_their_texts_and_none_is_fatal() -> None:
    paths = pages()
    if len(paths) < 20:
        pytest.skip(f"{FOLDERS} holds {len(paths)} pages, fewer than 20: MILLSTREAM_PAGES names other folders")

    async def work() -> tuple[list[PageText], list[float]]:
        extraction = Extraction(1)
        found, took = [], []
        try:
            await extraction.extract(PageResponse(200, "text/html", "", None, b"<p>warm"))
            for path in paths:
                page = await asyncio.to_thread(fetched, path)
                began = time.perf_counter()
                found.append(await extraction.extract(page))
                took.append(time.perf_counter() - began)
        finally:
            await extraction.close()
        return found, took

    found, took = run_on("asyncio", work(), within_s=len(paths) * 2 + 100)
    counts = Counter(one.status for one in found)
    titled = sum(bool(one.title) for one in found if one.status == "ok")
    share = counts["ok"] / len(found)
    milliseconds = sorted(1000 * one for one in took)
    print(f"\n{len(found)} pages of {FOLDERS}: {dict(counts)}, {share:.1%} with text, {titled} with a title")
    print(
        f"a page took {statistics.mean(milliseconds):.1f} ms, the middle one {statistics.median(milliseconds):.1f}, "
        f"one in twenty {milliseconds[len(milliseconds) * 19 // 20]:.1f} or more, the slowest {milliseconds[-1]:.0f}; "
        f"{sum(len(one.text) for one in found) // len(found):,} characters a page"
    )
    for path, one in zip(paths, found, strict=True):
        assert (one.status == "ok") == bool(one.text) and (one.text or one.detail), path
        if one.status != "ok":
            print(f"{path.name}: {one.status}, {one.detail}")
    assert share >= 0.9
    # Entities and charsets came through: no text is made of replacement characters or markup.
    whole = "".join(one.text for one in found)
    assert whole.count("\ufffd") < len(whole) / 1_000
    assert whole.count("</") < len(whole) / 500
