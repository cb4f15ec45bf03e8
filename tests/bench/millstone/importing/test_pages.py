"""Saved pages: what the markup names is found, what it doesn't name is found by other ways, and both are told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from parsers import hangs_on_b, raises_on_b

from millstream.bench.millstone.checks import CheckRules
from millstream.bench.millstone.dataset import DatasetError
from millstream.bench.millstone.importing.gathering import gather
from millstream.bench.millstone.importing.pages import BYTES_MAX, read_page, read_pages

# The program's own workers, which read pages.
pytestmark = pytest.mark.process

WHOLE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Ferries | Debates</title></head><body>
<nav><ul><li><a href="#x">Pro 1: only in the table of contents</a></li></ul></nav>
<h1>Ferries</h1><div class="font-16 topic-identifier">Should ferries <em>be</em>&nbsp;free?</div>
<section class="wide pro" id="1"><h2>Pro 1: Free ferries<br>help the islands.</h2>
 <p class="topic-paragraph">Islanders travel&#8217;s more<sup><a href="#pcref-12-2">[2]</a></sup> now
 <a href="/page#pcref-12-1"><span>1</span></a>.</p>
 <p class="advert">Buy this!</p><script>var pro = "Pro 9: no";</script>
 <blockquote class="topic-paragraph"><p>Quoted once.</p><p class="topic-paragraph">Twice. [<a href="#pcref-12-3">3</a>]
 </p></blockquote>
 <ul class="topic-paragraph"><li>first<p>of all</p></li><li>second <a href="https://x.example/">link</a></li></ul>
</section>
<section class="pro"><h2>Pro-island policies pay.</h2><p class="topic-paragraph">Yes.</p></section>
<section class="con"><h2>Con 1 &ndash; They cost.</h2><!-- Con 2 -->
 <ol class="topic-paragraph"><li>Money.</li></ol></section>
<section><h2>Sources</h2><p>All read in May.</p><ol><li id="s-1">A. One, <i>Journal</i>, 2020</li><li>[2] Two</li>
<li>Three</li></ol></section></body></html>"""


def details(page: str | bytes) -> list[str]:
    data = page if isinstance(page, bytes) else page.encode()
    _, findings = read_page(data)
    assert all(not finding.is_fault for finding in findings)
    return [finding.detail for finding in findings]


def content(page: str | bytes) -> dict[str, Any]:
    return read_page(page if isinstance(page, bytes) else page.encode())[0]


def test_what_the_markup_names_is_taken_and_nothing_else() -> None:
    assert content(WHOLE) == {
        "question": "Should ferries be free?",
        "pros": [
            "Free ferries help the islands.\nIslanders travel’s more[2] now [1].\n\nQuoted once.\nTwice. [3]\n\n"
            "- first of all\n- second link",
            "Pro-island policies pay.\nYes.",
        ],
        "cons": ["They cost.\n- Money."],
        "sources": {"[1]": "A. One, Journal, 2020", "[2]": "Two", "[3]": "Three"},
        "paraphrases": [],
    }
    assert details(WHOLE) == []


def test_the_numbers_of_citations_are_those_that_they_point_to() -> None:
    page = WHOLE.replace('href="#pcref-12-3">3<', 'href="#pcref-12-3">7<')
    assert content(page) == content(WHOLE)


def body(inside: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body>{inside}</body></html>"


ARGUMENTS = '<section class="pro"><h2>P</h2><p class="topic-paragraph">p</p></section>' + (
    '<section class="con"><h2>C</h2><p class="topic-paragraph">c</p></section>'
)
NO_SOURCES = "sources: no list under a heading Sources"


@pytest.mark.parametrize(
    ("page", "question", "place"),
    [
        (body(f"<h1></h1><h1>Should it be? | Site</h1>{ARGUMENTS}", "<title>T</title>"), "Should it be?", "h1"),
        (body(ARGUMENTS, '<meta property="og:title" content="Should it? | X"><title>T</title>'), "Should it?",
         "og:title"),
        (body(ARGUMENTS, "<title> Should\nit be | Site</title>"), "Should it be", "title"),
    ],
)  # fmt: skip
def test_a_question_without_its_class_is_taken_from_the_next_best_place(page: str, question: str, place: str) -> None:
    assert content(page)["question"] == question
    assert details(page) == [f"question: no div of class topic-identifier; taken from the {place}", NO_SOURCES]


def test_without_any_title_there_is_no_question() -> None:
    (report,) = gather([source_of(body(ARGUMENTS))], CheckRules(needs_paraphrases=False)).files
    assert report.state == "left out"
    assert [one.detail for one in report.findings if one.is_fault] == ["question: expected it, got nothing"]


def source_of(page: str) -> Any:
    from millstream.bench.millstone.importing.checkout import CheckoutIssue

    made, findings = read_page(page.encode())
    return CheckoutIssue("page.html", "page", made, tuple(findings))


QUESTION = '<div class="topic-identifier">Q?</div>'


def test_a_section_may_lack_its_title_its_classes_or_its_text() -> None:
    page = body(
        f'{QUESTION}<section class="pro"><h3>Pro 1: In an h3</h3><p>Unclassed <b>words</b>.</p><ul><li>i</li></ul>'
        "</section>"
        '<section class="pro"><p class="topic-paragraph">Untitled.</p></section>'
        '<section class="pro"><h2>A title alone</h2></section>'
        '<section class="con"><h2>Con 1</h2><p class="topic-paragraph">Numbered only.</p></section>'
        "<h2>References</h2><ul><li>R</li></ul>"
    )
    assert content(page)["pros"] == ["In an h3\nUnclassed words.\n\n- i", "Untitled.", "A title alone"]
    assert content(page)["cons"] == ["Numbered only."]
    assert content(page)["sources"] == {"[1]": "R"}
    assert details(page) == [
        "pros[0]: no h2; its title taken from the h3",
        "pros[0]: no paragraph of class topic-paragraph; every paragraph taken",
        "pros[1]: no h2; has no title",
        "pros[2]: no paragraph of class topic-paragraph; it has no text below its title",
    ]


def test_a_section_around_sections_of_its_class_is_no_argument() -> None:
    page = body(f'{QUESTION}<section class="pro">{ARGUMENTS}</section>')
    assert (content(page)["pros"], content(page)["cons"]) == (["P\np"], ["C\nc"])


def test_arguments_are_found_by_their_headings() -> None:
    page = body(
        f"{QUESTION}<h2>Pros and Cons</h2><p>Introduction.</p><h3>Pro 1: Quick</h3><p>They are quick [1].</p>"
        "<div><ul><li>a</li><li>b</li></ul></div><blockquote>Quick!</blockquote><h4>Aside</h4><p>More.</p>"
        "<h3>PRO #2</h3><p>Nice.</p>"
        "<h3>Con argument 1 – Loud</h3><p>Loud.</p><footer><p>Con footer</p></footer><h2>Discussion</h2><p>no</p>"
        "<h2>Sources:</h2><ol><li>[1] S</li></ol>"
    )
    assert content(page)["pros"] == ["Quick\nThey are quick [1].\n\n- a\n- b\n\nQuick!\n\nAside\n\nMore.", "Nice."]
    assert content(page)["cons"] == ["Loud\nLoud."]
    assert content(page)["sources"] == {"[1]": "S"}
    assert details(page) == [
        "pros: no section of class pro; found by headings",
        "cons: no section of class con; found by headings",
    ]


@pytest.mark.parametrize(
    "headings", [("Pros", "Cons"), ("Arguments for free ferries", "Arguments against"), ("The pro side", "CON")]
)
def test_a_heading_of_a_whole_side_holds_headings_items_or_paragraphs(headings: tuple[str, str]) -> None:
    pro, con = headings
    listed = "<ul><li>Loud</li><li>Wet</li></ul>"
    under = "<h3>Pro-bono rides</h3><p>Free.</p><p>Fair.</p><h3>Speed</h3><p>Fast.</p>"
    for inside, expected in (
        (under, ["Pro-bono rides\nFree.\n\nFair.", "Speed\nFast."]),
        (listed, ["Loud", "Wet"]),
        ("<p>One.</p><p>Two.</p>", ["One.", "Two."]),
    ):
        page = body(f"{QUESTION}<h2>{pro}</h2>{inside}<h2>{con}</h2>{listed}<h2>Sources</h2><ol><li>S</li></ol>")
        assert (content(page)["pros"], content(page)["cons"]) == (expected, ["Loud", "Wet"])


def test_a_heading_of_the_other_side_ends_an_argument_whatever_its_level() -> None:
    page = body(f"{QUESTION}<h2>Pro 1: Quick</h2><p>Fast.</p><h4>Con 1: Loud</h4><p>Loud.</p><h3>Sources</h3><p>S</p>")
    assert (content(page)["pros"], content(page)["cons"]) == (["Quick\nFast."], ["Loud\nLoud."])


def test_numbered_headings_under_the_heading_of_a_side_are_taken_once() -> None:
    page = body(
        f"{QUESTION}<h2>Pros</h2><p>Two of them.</p><h3>Pro 1: Quick</h3><p>Fast.</p><h3>Pro 2: Nice</h3><p>Nice.</p>"
        "<h2>Cons</h2><h3>Con 1: Loud</h3><p>Loud.</p>"
    )
    assert (content(page)["pros"], content(page)["cons"]) == (["Quick\nFast.", "Nice\nNice."], ["Loud\nLoud."])


def test_one_side_may_be_in_sections_and_the_other_under_headings() -> None:
    sections, _, _ = ARGUMENTS.partition('<section class="con">')
    page = body(f"{QUESTION}{sections}<h2>Con 1: Loud</h2><p>Loud.</p>")
    assert (content(page)["pros"], content(page)["cons"]) == (["P\np"], ["Loud\nLoud."])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (body('<div class="topic-identifier">Café?</div>').encode("utf-8-sig"), "Café?"),
        (body('<div class="topic-identifier">Café?</div>').encode("cp1252"), "Café?"),
        (
            body('<div class="topic-identifier">Łódź?</div>', '<meta charset="iso-8859-2">').encode("iso-8859-2"),
            "Łódź?",
        ),
        (body('<div class="topic-identifier">Café?</div>', "<meta charset=no-such>").encode("cp1252"), "Café?"),
    ],
    ids=["UTF-8 with a mark", "nothing declared", "declared", "an unknown name declared"],
)
def test_a_page_may_be_in_another_encoding(data: bytes, expected: str) -> None:
    assert content(data)["question"] == expected


def test_a_folder_of_pages_is_read_file_by_file_and_no_page_stops_it(tmp_path: Path) -> None:
    (tmp_path / "ferries.html").write_text(WHOLE, "utf-8")
    (tmp_path / "empty.htm").write_bytes(b"")
    (tmp_path / "large.html").write_bytes(b"<p>" + b" " * BYTES_MAX)
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "notes.txt").write_text("Pro 1: none")
    result = gather(read_pages(tmp_path), CheckRules(needs_paraphrases=False))
    assert {Path(file.file).name: (file.state, [one.detail for one in file.findings]) for file in result.files} == {
        "empty.htm": ("left out", ["expected HTML, got something else: Document is empty"]),
        "ferries.html": ("used", []),
        "folder.html": ("left out", ["expected a file, got a folder"]),
        "large.html": ("left out", ["expected a file of at most 5 MiB, got a larger one"]),
        "pipe.html": ("left out", ["expected a file, got a pipe"]),
    }
    assert [draft.id for draft in result.drafts] == ["ferries"]
    assert result.contents()["ferries"] == content(WHOLE)


@pytest.mark.parametrize(
    ("given", "left", "name"),
    [
        ("\x0b", " ", "000B"), ("\x1b", "", "001B"), ("\x00", "", "0000"), ("\ufffe", "", "FFFE"),
        ("&#11;", " ", "000B"), ("&#x1b;", "", "001B"), ("&#1;", "", "0001"), ("&#xFFFF;", "", "FFFF"),
    ],
)  # fmt: skip
def test_a_control_character_is_left_out_wherever_it_stands_and_told_once(given: str, left: str, name: str) -> None:
    page = WHOLE.replace("Islanders travel", f"Islanders{given}travel").replace("They cost.", f"They{given}cost.")
    page = page.replace("<em>be</em>", f"<em>be</em>{given}").replace("<!-- Con 2 -->", f"<!-- {given} --><br>{given}")
    made, whole = content(page), content(WHOLE)
    assert made["pros"] == [whole["pros"][0].replace("Islanders travel", f"Islanders{left}travel"), whole["pros"][1]]
    assert made["cons"] == [whole["cons"][0].replace("They cost", f"They{left}cost")]
    assert (made["question"], made["sources"]) == (whole["question"], whole["sources"])
    assert details(page) == [f"U+{name}: left out of the text"]


def test_a_control_character_in_the_title_of_a_page_is_left_out() -> None:
    page = body(ARGUMENTS, '<meta property="og:title" content="Should&#11;it&#27;?">')
    assert content(page)["question"] == "Should it?"
    assert details(page)[0] == "U+000B, U+001B: left out of the text"


def test_whatever_a_parser_raises_is_a_finding_of_that_page_alone(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.html").write_text(WHOLE.replace("Ferries", name), "utf-8")

    result = gather(read_pages(tmp_path, raises_on_b), CheckRules(needs_paraphrases=False))
    assert [file.state for file in result.files] == ["used", "left out", "used"]
    assert [(one.what, one.detail) for one in result.files[1].findings] == [
        ("unreadable", "expected a page, got one that the parser fails on: RuntimeError: the parser's own ?")
    ]


def test_a_page_that_no_parser_gets_done_with_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.html").write_text(WHOLE.replace("Ferries", name), "utf-8")
    result = gather(read_pages(tmp_path, hangs_on_b, within_s=2.0), CheckRules(needs_paraphrases=False))
    assert [file.state for file in result.files] == ["used", "left out", "used"]
    assert [(one.what, one.detail) for one in result.files[1].findings] == [
        ("unreadable", "expected a page, got one that the parser was stopped at: not done within 2 s")
    ]


def test_a_page_of_nothing_but_headings_of_sources_is_read_in_one_pass() -> None:
    assert content(body("<h2>Sources</h2><ol></ol>" * 3_000 + "<ul><li>S</li></ul>"))["sources"] == {"[1]": "S"}


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected a folder of saved pages, got one without any \.html file"):
        list(read_pages(tmp_path))


PIECES = st.sampled_from(
    ["<section class=pro>", "</section>", "<section class='con'>", "<h2>", "</h2>", "Pro 1:", "Con", "Sources", "<ol>",
     "<li>", "</ol>", "<p class=topic-paragraph>", "<a href='#pcref-1-1'>", "</a>", "<ul>", "<blockquote>", "<br>",
     "<div class=topic-identifier>", "<div>", "<b>", "text", "&#xD800;", "&#0;", "<!--", "-->", "<?x ?>", "<title>",
     "<", "é", "**", "# ", "\x0b", "&#27;", "\x00", "<meta property=og:title content='&#1;'>", "&#xFFFE;"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join).map(str.encode) | st.binary(max_size=200))
@example(b"<div>" * 5_000 + b"x")
@example(b"<section class=pro><h2>" * 300)
def test_no_page_raises_and_every_text_found_can_be_written(data: bytes) -> None:
    made, findings = read_page(data)
    assert made or any(finding.is_fatal for finding in findings)
    for text in [
        made.get("question", ""),
        *made.get("pros", ()),
        *made.get("cons", ()),
        *made.get("sources", {}).values(),
    ]:
        text.encode()
    for finding in findings:
        finding.detail.encode()
