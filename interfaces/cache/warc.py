"""Writes a run's pages as a WARC file for other tools: every hop as it was received, with robots.txt and refusals.

Owns which parts of a stored hop go into the file, under which names. Bodies keep their content encoding. Reads the
cache; sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http.client import responses
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from ...engine.endpoint import Response
from ...engine.fault import LocalFault
from ...engine.store.cache import Cache
from ...engine.store.entries import StoredAnswer, StoredFailure, later_of
from ...engine.store.run_keys import SortedKeys
from ...engine.version import VERSION

# Headers that a host sent; the others in a stored response are our own.
_HEADERS = {
    "content-type": "Content-Type",
    "content-encoding": "Content-Encoding",
    "location": "Location",
    "retry-after": "Retry-After",
    "date": "Date",
}
_BREAKS = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


class WarcSize(Struct):
    """Counts of a WARC file: `responses` in it, `silent` pages whose hosts sent no response, and its size in bytes."""

    responses: int = 0
    silent: int = 0
    bytes: int = 0


def write_warc(cache: Cache, keys: Iterable[tuple[bytes, bool]], path: Path, about: dict[str, str]) -> WarcSize:
    """Writes the pages as WARC records, each compressed if the name ends with `.gz`, and returns the counts. An
    existing file is replaced only by a whole one. `about` goes into the first record."""
    draft, written = path.with_name(f"{path.name}.new"), WarcSize()
    try:
        with SortedKeys(path.parent) as wanted, draft.open("wb") as file:
            for key, _ in keys:
                wanted.add(key)
            writer = WARCWriter(file, gzip=path.suffix == ".gz")
            fields = {"software": f"millstream/{VERSION}", "format": "WARC File Format 1.0", **about}
            writer.write_record(writer.create_warcinfo_record(path.name, fields))
            for entry in _pages(cache, (key for key, _ in wanted.begin_with(b""))):
                if entry.response is None:
                    written.silent += 1
                else:
                    written.responses += 1
                    _write(writer, entry, entry.response)
            file.flush()
            written.bytes = file.tell()
        draft.replace(path)
    except OSError as error:
        raise LocalFault(f"{path} can't be written ({error.strerror}): free disk space, or choose another") from error
    finally:
        draft.unlink(missing_ok=True)
    return written


def _pages(cache: Cache, keys: Iterator[bytes]) -> Iterator[StoredAnswer | StoredFailure]:
    """Yields the stored result of each hop, the later of an answer and a failure, but no documents of a corpus."""
    for key in keys:
        later = later_of(cache.get(key), cache.failure(key))
        if later is not None and later.url.startswith(("http://", "https://")):
            yield later


def _write(writer: Any, entry: StoredAnswer | StoredFailure, response: Response) -> None:
    headers = [(name, _plain(response.headers[kept])) for kept, name in _HEADERS.items() if kept in response.headers]
    headers.append(("Content-Length", str(len(response.body))))
    status = f"{response.status} {responses.get(response.status, 'Unknown')}"
    at = datetime.fromtimestamp(entry.received_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = writer.create_warc_record(
        _address(entry.url),
        "response",
        payload=BytesIO(response.body),
        length=len(response.body),
        warc_headers_dict={"WARC-Date": at},
        http_headers=StatusAndHeaders(status, headers, protocol="HTTP/1.1"),
    )
    writer.write_record(record)


def _address(url: str) -> str:
    """Returns the address without characters that would end its line."""
    return _BREAKS.sub(lambda match: quote(match[0]), url)


def _plain(value: str) -> str:
    """Returns the text as one line of characters that a header can hold."""
    return " ".join(value.split()).encode("latin-1", "replace").decode("latin-1")
