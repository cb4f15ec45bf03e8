"""The text of one page, or why there is none. What is hostile to parsers is the extraction's test."""

from __future__ import annotations

import gzip

import pytest
from page_hosts import PAGE

from millstream.providers.pages.extracting import PDF_PAGES_MAX, extract
from millstream.providers.pages.page import TEXT_MAX, PageText


def html(body: str, head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode()


def pdf(*pages: str, title: str = "") -> bytes:
    """A plain PDF, one line a page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    objects.append(f"<< /Title ({title}) >>".encode("latin-1"))
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    count = len(objects) + 1
    return out + b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table) + end % (count, len(objects), len(out))


def test_of_html_the_main_text_and_the_title_are_found() -> None:
    found = extract(PAGE, "text/html", "")
    assert (found.status, found.title, found.detail) == ("ok", "A title", "")
    assert found.text.startswith("Heading\nParagraph number 0 says something") and "menu" not in found.text
    assert len(found.text.splitlines()) == 10


def test_data_that_broke_off_says_so_beside_its_text() -> None:
    found = extract(gzip.compress(PAGE * 50)[:-40], "text/html", "gzip")
    assert found.status == "ok" and found.detail.endswith("the compressed data broke off")


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (html("<p>x", "<title> A\n <b>title</b> </title>"), "A <b>title</b>"),
        (html("<p>x", '<meta property="og:title" content="Shared">'), "Shared"),
        (html("<h1>The <em>head</em></h1>"), "The head"),
        (html("<p>x", f"<title>{'long ' * 200}</title>"), ("long " * 60)),
        (html("<p>x"), ""),
    ],
)
def test_a_title_is_looked_for_in_three_places(page: bytes, title: str) -> None:
    assert extract(page, "text/html", "").title == title


def test_a_page_without_a_main_text_gives_all_that_it_says() -> None:
    rows = "".join(f"<div><span>Row {number}</span><br>and its value</div>" for number in range(40))
    page = html(f"<script>var x;</script><style>p {{}}</style>{rows}")
    found = extract(page, "text/html", "")
    assert found.status == "ok" and "Row 39" in found.text
    assert not any(word in found.text for word in ("var x", "p {"))


def test_a_page_nested_deeper_than_any_parser_goes_still_gives_its_text() -> None:
    page = html(
        "<nav>Menu</nav>" + "<div>" * 5_000 + "deep words" + "</div>" * 5_000 + "<footer><div>End</div></footer>"
    )
    found = extract(page, "text/html", "")
    assert (found.status, found.text) == ("ok", "deep words")
    assert found.detail == "nested too deeply to find its main text: the whole page"


def test_a_short_text_is_a_text() -> None:
    assert extract(html("<p>Yes."), "text/html", "").text == "Yes."
    assert extract(b"Yes.", "text/plain", "") == PageText("ok", "Yes.")


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "status", "detail"),
    [
        (b"", "text/html", "", "empty", "a page without a single character"),
        (b" \n ", "text/plain", "", "empty", "a page without a single character"),
        (html("<script>1</script>"), "text/html", "", "empty", "no text was found in the page"),
        (b"\x89PNG\r\n\x1a\n", "image/png", "", "not_text", "a PNG picture"),
        (b'{"a": "b"}', "application/json", "", "not_text", "JSON"),
        (b"x", "text/html", "br", "not_text", "compressed as 'br', which was not asked for"),
        (gzip.compress(bytes(11 << 20)), "text/html", "gzip", "too_large", "more than 10 MiB when decompressed"),
        (b"%PDF-1.4 and no more", "application/pdf", "", "not_text", "a PDF that can't be opened"),
        (pdf(""), "application/pdf", "", "empty", "a PDF without text, such as a scanned one"),
    ],
)
def test_what_gives_nothing_says_why(body: bytes, content_type: str, encoding: str, status: str, detail: str) -> None:
    found = extract(body, content_type, encoding)
    assert (found.status, found.text) == (status, "")
    assert found.detail.startswith(detail)


def test_of_a_pdf_pages_and_title_are_read() -> None:
    found = extract(pdf("First page.", "Second page.", title="On ferries"), "application/pdf", "")
    assert found == PageText("ok", "First page.\n\nSecond page.", "On ferries")
    assert extract(pdf("Mislabelled."), "text/html", "").text == "Mislabelled."


def test_of_a_very_long_pdf_the_beginning_is_read_and_that_is_told() -> None:
    found = extract(pdf(*(f"Page {number}." for number in range(PDF_PAGES_MAX + 5))), "application/pdf", "")
    assert found.text.endswith(f"Page {PDF_PAGES_MAX - 1}.") and found.detail == "the first 200 of 205 pages"


def test_a_very_long_text_is_cut_and_that_is_told() -> None:
    found = extract(b"word " * (TEXT_MAX // 5 + 100), "text/plain", "")
    assert TEXT_MAX - 5 <= len(found.text) <= TEXT_MAX and found.detail == "cut after 400,000 characters"


def test_no_control_character_reaches_a_prompt() -> None:
    for body, content_type in ((b"a\x00b\x1b[31mc\r\nd\x7f", "text/plain"), (html("<p>a&#27;[31mb\x08c"), "text/html")):
        text = extract(body, content_type, "").text
        assert text and all(character == "\n" or character.isprintable() for character in text), text
