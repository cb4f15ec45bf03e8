"""Bytes made readable: what is compressed, what it is whatever it is called, and in which charset."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.providers.pages.content import (
    DECODED_MAX,
    NotReadable,
    PageContent,
    TooMuch,
    decoded,
    decompressed,
    kind_of,
    without_more_layers,
)

TEXT = b"".join(b"Line %d of a text that is long enough to be compressed.\n" % number for number in range(20_000))
RAW = zlib.compressobj(9, zlib.DEFLATED, -15)
DEFLATED = RAW.compress(TEXT) + RAW.flush()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(TEXT), "X-GZIP"),
        (zlib.compress(TEXT), "deflate"),
        (DEFLATED, "deflate"),
        (gzip.compress(gzip.compress(TEXT)), "gzip, gzip"),
        (zlib.compress(gzip.compress(TEXT)), "gzip,deflate"),
        (gzip.compress(TEXT[:9_000]) + gzip.compress(TEXT[9_000:]), "gzip"),
        (gzip.compress(TEXT) + b"whatever stands behind it", "gzip"),
        (TEXT, "gzip"),
        (TEXT, "deflate"),
    ],
)
def test_what_a_host_compressed_is_read(body: bytes, encoding: str) -> None:
    assert decompressed(body, encoding) == PageContent(TEXT)


def test_one_layer_more_than_told_is_taken_off() -> None:
    assert without_more_layers(decompressed(gzip.compress(gzip.compress(TEXT)), "gzip")) == PageContent(TEXT)
    assert without_more_layers(PageContent(TEXT)) == PageContent(TEXT)


@given(st.integers(min_value=100, max_value=len(gzip.compress(TEXT)) - 1))
def test_of_data_that_breaks_off_what_was_there_is_read(length: int) -> None:
    found = decompressed(gzip.compress(TEXT, mtime=0)[:length], "gzip")
    assert not found.is_whole and TEXT.startswith(found.data)
    assert len(found.data) >= len(TEXT) * (length - 100) // len(gzip.compress(TEXT)) * 9 // 10 - 20_000


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "gzip, deflate", ""]))
def test_no_bytes_are_fatal(body: bytes, encoding: str) -> None:
    assert without_more_layers(decompressed(body, encoding)) is not None


def test_a_fault_in_the_middle_keeps_what_came_before_it() -> None:
    body = bytearray(gzip.compress(TEXT, mtime=0))
    body[len(body) // 2] ^= 0xFF
    found = decompressed(bytes(body), "gzip")
    assert not found.is_whole and len(found.data) > len(TEXT) // 4
    assert TEXT.startswith(found.data[: len(TEXT) // 4])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_bomb_is_left_as_soon_as_it_is_known(layers: int) -> None:
    body = bytes(DECODED_MAX + 1)
    for _ in range(layers):
        body = gzip.compress(body)
    with pytest.raises(TooMuch):
        without_more_layers(decompressed(body, "gzip"))
    assert len(decompressed(gzip.compress(bytes(DECODED_MAX)), "gzip").data) == DECODED_MAX


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, br", ", ".join(["gzip"] * 5), "\x00"])
def test_what_was_not_asked_for_is_not_read(encoding: str) -> None:
    with pytest.raises(NotReadable):
        decompressed(gzip.compress(TEXT), encoding)


@pytest.mark.parametrize(
    ("data", "claimed", "kind"),
    [
        (b"<!DOCTYPE html><p>x", "text/html", "html"),
        (b"<!DOCTYPE html><p>x", "text/plain", "html"),
        (b"\xef\xbb\xbf\n <HTML>", "", "html"),
        (b"<html>an error page</html>", "image/png", "html"),
        (b'<?xml version="1.0"?><html xmlns="x"><p>x', "application/xhtml+xml", "html"),
        (b'<?xml version="1.0"?><html xmlns="x"><p>x', "text/xml", "html"),
        (b"%PDF-1.7\n", "text/html", "pdf"),
        (b"\n\n%PDF-1.4", "application/octet-stream", "pdf"),
        (b"just words", "text/plain", "text"),
        (b"just words", "", "text"),
        (b"# words", "text/markdown; charset=utf-8", "text"),
        (b"a,b\n1,2", "text/csv", "text"),
        (b"just words", "application/octet-stream", "text"),
        ("words".encode("utf-16"), "text/plain", "text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text/html", "other"),
        (b"GIF89a\0", "text/html", "other"),
        (b"\xff\xd8\xff\xe0\0", "", "other"),
        (b"PK\x03\x04\0", "text/html", "other"),
        (b"RIFF\0\0\0\0WEBP", "", "other"),
        (b"\0\0\0\x20ftypmp42", "", "other"),
        (b"\x1f\x8b\x08\0", "application/gzip", "other"),
        (b"words \0 of binary", "", "other"),
        (b'{"a": 1}', "application/json", "other"),
        (b'{"a": 1}', "application/ld+json", "other"),
        (b'{"a": 1}', "", "other"),
        (b"<?xml version='1.0'?><rss>", "application/rss+xml", "other"),
        (b"<?xml version='1.0'?><urlset>", "text/html+xml", "other"),
        (b"body { color: red }", "text/css", "other"),
        (b"MZ\x90\0\x03\0\0\0", "application/x-msdownload", "other"),
        (b"words", "application/x-unknown", "other"),
        (b"words", "video/mp4", "other"),
    ],
)
def test_what_bytes_are_is_told_by_them_more_than_by_what_they_are_called(data: bytes, claimed: str, kind: str) -> None:
    found, name = kind_of(data, claimed)
    assert found == kind
    assert bool(name) == (kind == "other")


RUSSIAN = "Паром ходит к острову два раза в день, зимой только утром, и билет стоит недорого. " * 5


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("naïve".encode(), "text/html", "naïve"),
        ("naïve “x”".encode("cp1252"), "text/html; charset=ISO-8859-1", "naïve “x”"),
        ("日本語".encode("cp932"), 'text/html; charset="Shift_JIS"', "日本語"),
        ("中文".encode("gb18030"), "text/html; charset=gb2312", "中文"),
        ("한국어".encode("cp949"), "text/html;charset=EUC-KR", "한국어"),
        (RUSSIAN.encode("koi8-r"), "text/html; charset=koi8-r", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "text/html", RUSSIAN),
        ("naïve".encode("utf-8-sig"), "text/html; charset=latin-1", "naïve"),
        ("naïve".encode("utf-16"), "text/html; charset=utf-8", "naïve"),
        ("naïve".encode("utf-16-be"), "text/plain; charset=utf-16be", "naïve"),
        (b'<meta charset="windows-1251">' + "да".encode("cp1251"), "", '<meta charset="windows-1251">да'),
        (b'<meta charset="utf-16">na\xc3\xafve', "text/html", '<meta charset="utf-16">naïve'),
        ("naïve".encode(), "text/html; charset=nonsense", "naïve"),
        ("naïve".encode(), "text/html; charset=punycode", "naïve"),
        ("naïve".encode(), "text/html; charset=rot13", "naïve"),
        (b"a" * 5_000 + b"\xff", "text/html; charset=utf-8", "a" * 5_000 + "\ufffd"),
    ],
)
def test_a_charset_is_found_by_its_mark_its_header_the_page_or_a_guess(
    data: bytes, content_type: str, text: str
) -> None:
    assert decoded(data, content_type) == text


@given(st.binary(max_size=400), st.text(max_size=30).map("text/html; charset={}".format))
def test_no_charset_is_fatal(data: bytes, content_type: str) -> None:
    assert isinstance(decoded(data, content_type), str)
