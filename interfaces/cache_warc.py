"""A run's pages as a WARC file, for tools that are not ours: every hop as it came, robots.txt and refusals included.

Owns what of a stored hop goes into the file and under which names. Bodies are those of the wire, still under their
content encoding. Reads the cache; sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from msgspec import Struct
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from .. import __version__
from ..engine.cache import Cache
from ..engine.endpoint import Response
from ..engine.entries import Entry, Failed
from ..engine.fault import LocalFault
from ..engine.run_keys import SortedKeys

# What a host said; whatever else stands beside a response is our own.
_HEADERS = {
    "content-type": "Content-Type",
    "content-encoding": "Content-Encoding",
    "location": "Location",
    "retry-after": "Retry-After",
    "date": "Date",
}
_BREAKS = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


class Written(Struct):
    """What a WARC file holds. `silent`: pages whose hosts gave no response to write down."""

    responses: int = 0
    silent: int = 0
    bytes: int = 0


def write_warc(cache: Cache, keys: Iterable[tuple[bytes, bool]], path: Path, about: dict[str, str]) -> Written:
    """Compressed record by record where the name ends with `.gz`. Puts nothing into another file's place before it is
    whole. `about` goes into the file's first record."""
    draft, written = path.with_name(f"{path.name}.new"), Written()
    try:
        with SortedKeys(path.parent) as wanted, draft.open("wb") as file:
            for key, _ in keys:
                wanted.add(key)
            writer = WARCWriter(file, gzip=path.suffix == ".gz")
            told = {"software": f"millstream/{__version__}", "format": "WARC File Format 1.0", **about}
            writer.write_record(writer.create_warcinfo_record(path.name, told))
            for found in _pages(cache, (key for key, _ in wanted.begin_with(b""))):
                if found.response is None:
                    written.silent += 1
                else:
                    written.responses += 1
                    _write(writer, found, found.response)
            written.bytes = _size(file)
        draft.replace(path)
    except OSError as error:
        raise LocalFault(f"{path} can't be written ({error.strerror}): free disk space, or choose another") from error
    finally:
        draft.unlink(missing_ok=True)
    return written


def _pages(cache: Cache, keys: Iterator[bytes]) -> Iterator[Entry | Failed]:
    """What came of each hop: the later of an answer and a failure. A document of a corpus was on no web."""
    for key in keys:
        entry, failed = cache.get(key), cache.failure(key)
        found: Entry | Failed | None = entry
        if failed is not None and (entry is None or failed.received_at > entry.received_at):
            found = failed
        if found is not None and found.url.startswith(("http://", "https://")):
            yield found


def _write(writer: Any, found: Entry | Failed, response: Response) -> None:
    headers = [(name, _plain(response.headers[kept])) for kept, name in _HEADERS.items() if kept in response.headers]
    headers.append(("Content-Length", str(len(response.body))))
    at = datetime.fromtimestamp(found.received_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = writer.create_warc_record(
        _address(found.url),
        "response",
        payload=BytesIO(response.body),
        length=len(response.body),
        warc_headers_dict={"WARC-Date": at},
        http_headers=StatusAndHeaders(_status(response.status), headers, protocol="HTTP/1.1"),
    )
    writer.write_record(record)


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


def _address(url: str) -> str:
    """Without what would end its line, or begin another."""
    return _BREAKS.sub(lambda found: quote(found[0]), url)


def _plain(value: str) -> str:
    """One line of characters that a header can carry."""
    return " ".join(value.split()).encode("latin-1", "replace").decode("latin-1")


def _size(file: IO[bytes]) -> int:
    file.flush()
    return file.tell()
