"""Decompresses the bytes of a page, detects their kind and decodes them to text.

Pure; runs in a worker. Headers are hints: neither a wrong charset nor any other wrong claim is fatal.
"""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Literal

import charset_normalizer
from msgspec import Struct

from ..transport.decompression import Decompressor

DECODED_MAX = 10 << 20
# Some servers compress twice; more layers are no honest page.
LAYERS_MAX = 4

Kind = Literal["html", "pdf", "text", "other"]

_GZIP = b"\x1f\x8b\x08"
# The bytes that are decompressed at once: of these, damage costs those before it too.
_READ = 256
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"(\xb5/\xfd", "a zstd archive"),
    (b"\x00asm", "a program"),
    (b"\x7fELF", "a program"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"OggS", "a sound or a film"),
    (b"ID3", "a sound"),
    (b"\x1aE\xdf\xa3", "a film"),
    (b"%!PS", "a PostScript document"),
    (b"{\\rtf", "an RTF document"),
)
_MARKUP = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|div|p|h1|table|article|script|a)\b", re.I)
_XHTML = re.compile(rb"<html[\s>]", re.I)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_IN_PAGE = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
# As browsers read these names: text in the larger charset is often labelled with the smaller one.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
# Python has codecs that are no charsets, and some that take quadratic time.
# fmt: off
_CHARSETS = frozenset((
    "utf-8", "utf-16-le", "utf-16-be", "gb18030", "cp932", "cp949", "big5hkscs", "euc_jp", "iso2022_jp", "hz", "johab",
    "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254",
    "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6",
    "iso8859-7", "iso8859-8", "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16",
))
# fmt: on
_GUESSED_FROM = 16_384


class PageContent(Struct, frozen=True):
    """The bytes of a page, decompressed. `is_whole` is False if the compressed data broke off or was damaged."""

    data: bytes
    is_whole: bool = True


class NotReadable(Exception):
    """Raised if the bytes can't be read; the message is one line that says why."""


class TooMuch(Exception):
    """Raised for more than DECODED_MAX bytes after decompression."""


def decompressed(body: bytes, encoding: str) -> PageContent:
    """Returns a body without the compression that its host names in `encoding`; one that is claimed but absent is
    ignored. Raises NotReadable or TooMuch."""
    named = [name.strip().lower() for name in encoding.split(",")]
    layers = [name for name in named if name and name != "identity"]
    if len(layers) > LAYERS_MAX:
        raise NotReadable(f"compressed {len(layers)} times over")
    content = PageContent(body)
    for name in reversed(layers):
        if name not in ("gzip", "x-gzip", "deflate"):
            raise NotReadable(f"compressed as {name[:40]!r}, which was not asked for")
        unpacked = _inflated(content.data, is_gzip=name != "deflate")
        if unpacked is None:
            continue  # it is not compressed at all
        content = PageContent(unpacked.data, content.is_whole and unpacked.is_whole)
    return content


def without_more_layers(content: PageContent) -> PageContent:
    """Returns the content without layers of gzip that the headers do not name; raises TooMuch."""
    for _ in range(LAYERS_MAX):
        unpacked = _inflated(content.data, is_gzip=True) if content.data.startswith(_GZIP) else None
        if unpacked is None:
            break
        content = PageContent(unpacked.data, content.is_whole and unpacked.is_whole)
    return content


def _inflated(data: bytes, *, is_gzip: bool) -> PageContent | None:
    """Returns the decompressed data, even if it breaks off; None if it is not compressed so. Raises TooMuch. Bytes
    after the end are ignored."""
    decompressor = Decompressor(b"gzip" if is_gzip else b"deflate")
    pieces: list[bytes] = []
    size = 0
    try:
        for start in range(0, len(data), _READ):
            pieces.append(decompressor.take(data[start : start + _READ], DECODED_MAX - size))
            size += len(pieces[-1])
            if size > DECODED_MAX:
                raise TooMuch
    except zlib.error:
        pass  # what was there before is read
    return PageContent(b"".join(pieces), decompressor.is_whole) if size or decompressor.is_whole else None


def kind_of(data: bytes, content_type: str) -> tuple[Kind, str]:
    """Returns the kind of the bytes, and for `other` what they are in words, else an empty text."""
    claimed = content_type.partition(";")[0].strip().lower().encode("utf-8", "replace").decode()
    start = data[:1_024]
    if b"%PDF-" in start:
        return "pdf", ""
    for signature, name in _SIGNATURES:
        if start.startswith(signature):
            return "other", name
    if start.startswith(b"RIFF") or start[4:8] == b"ftyp":
        return "other", "a picture, a sound or a film"
    if start.startswith(_GZIP):
        return "other", "a gzip archive"
    has_mark = any(start.startswith(mark) for mark, _ in _MARKS)
    if b"\0" in start and not has_mark and not claimed.startswith("text/"):
        return "other", "binary data"
    if start.count(b"\0") > len(start) // 2 + 1:
        return "other", "binary data"
    return _kind_of_text(data, claimed, start)


def _kind_of_text(data: bytes, claimed: str, start: bytes) -> tuple[Kind, str]:
    begin = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if claimed in ("text/html", "application/xhtml+xml"):
        return "html", ""
    if claimed == "application/json" or claimed.endswith("+json"):
        return "other", "JSON"
    if claimed.startswith(("image/", "audio/", "video/", "font/", "multipart/")):
        # An error page in place of a picture is a page all the same.
        return ("html", "") if _MARKUP.match(begin) else ("other", claimed[:60])
    if claimed in ("text/css", "text/javascript", "application/javascript", "application/x-javascript"):
        return "other", claimed
    if begin.startswith(b"<?xml") or claimed in ("text/xml", "application/xml") or claimed.endswith("+xml"):
        return ("html", "") if _XHTML.search(data[:4_096]) else ("other", "XML")
    if claimed.startswith("text/") and claimed != "text/plain":
        return "text", ""
    if _MARKUP.match(begin) or (not claimed and _MARKUP.search(start)):
        return "html", ""
    if claimed in ("", "text/plain", "application/octet-stream", "application/text", "binary/octet-stream"):
        if begin[:1] in (b"{", b"[") and claimed != "text/plain" and begin.rstrip()[-1:] in b'}],"':
            return "other", "JSON"
        return "text", ""
    if claimed.startswith(("application/", "model/", "chemical/")):
        return "other", claimed[:60]
    return "text", ""


def decoded(data: bytes, content_type: str) -> str:
    """Returns the text of any bytes, decoded by byte order mark, header, the page's declaration or a guess, with
    invalid bytes replaced."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    claimed = []
    if (in_header := _IN_HEADER.search(content_type)) is not None:
        claimed.append(_charset(in_header[1]))
    if (in_page := _IN_PAGE.search(data[:4_096])) is not None:
        declared = _charset(in_page[1].decode("ascii"))
        # A declaration that is found as plain ASCII letters is not written in UTF-16.
        claimed.append("utf-8" if declared is not None and declared.startswith("utf-16") else declared)
    named = [name for name in claimed if name is not None]
    for name in (*named, "utf-8"):
        strict = _strictly(data, name)
        if strict is not None:
            return strict
    if named:
        text = data.decode(named[0], "replace")
        # A few invalid bytes don't disprove the charset that the host or the author states.
        if text.count("\ufffd") <= 8 + len(text) // 1_000:
            return text
    best = charset_normalizer.from_bytes(data[:_GUESSED_FROM]).best()
    guessed = _charset(best.encoding) if best is not None else None
    return data.decode(guessed or (named[0] if named else "cp1252"), "replace")


def _strictly(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except UnicodeDecodeError:
        return None


def _charset(label: str) -> str | None:
    """Returns the codec for the name of a charset, None if it is not one."""
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return None
    name = {"utf-16": "utf-16-le"}.get(name, _WIDER.get(name, name))
    return name if name in _CHARSETS else None
