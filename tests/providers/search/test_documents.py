"""A folder as a corpus: which files are documents, what they are called and say, and what is refused."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from millstream.providers.search.documents import (
    CorpusDocument,
    CorpusError,
    digest_of,
    document_text,
    list_documents,
    page_of,
)


def put(folder: Path, **files: str | bytes) -> Path:
    """Files by their names, in which `__` stands for a dot and `_in_` for a slash."""
    for name, content in files.items():
        path = folder / name.replace("_in_", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def said(document: CorpusDocument) -> tuple[str, str]:
    told = document_text(document, document.read())
    return told.title, " ".join(told.text.split())


def only(folder: Path) -> CorpusDocument:
    (document,) = list_documents(folder)
    return document


def test_html_text_markdown_and_json_lines_are_documents_and_nothing_else_is(tmp_path: Path) -> None:
    rows = [{"text": "one"}, {"text": "two", "title": "Two", "url": "https://a.example/2"}]
    put(
        tmp_path,
        b__html="<p>x</p>",
        deep_in_er__HTM="<p>x</p>",
        a__txt="x",
        notes__md="x",
        rows__jsonl="\n\n".join(map(json.dumps, rows)) + "\n",
        picture__png="x",
        __hidden__txt="x",
        __folder_in_x__txt="x",
        none="x",
    )
    assert [document.url for document in list_documents(tmp_path)] == [
        "corpus:a.txt",
        "corpus:b.html",
        "corpus:deep/er.HTM",
        "corpus:https://a.example/2",
        "corpus:notes.md",
        "corpus:rows.jsonl/1",
    ]


def test_a_documents_title_and_text_are_what_a_reader_sees(tmp_path: Path) -> None:
    page = (
        "<!doctype html><html><head><title>Blue &amp; whale</title><style>p{}</style><script>var whale = 1;</script>"
        "</head><body><p>The <b>blue</b> whale&nbsp;sings.</p><SCRIPT>never</SCRIPT><p>End</p></body></html>"
    )
    assert said(only(put(tmp_path / "1", x__html=page))) == ("Blue & whale", "Blue & whale The blue whale sings. End")
    assert said(only(put(tmp_path / "2", x__html="<p>no title"))) == ("x.html", "no title")
    assert said(only(put(tmp_path / "3", x__md="\n\n# A heading\n\nText"))) == ("A heading", "# A heading Text")
    assert said(only(put(tmp_path / "4", x__txt=""))) == ("x.txt", "")
    row = json.dumps({"text": "It sings.", "title": "Whale", "url": "https://a.example/w"})
    assert said(only(put(tmp_path / "5", x__jsonl=row))) == ("Whale", "It sings.")
    assert said(only(put(tmp_path / "6", x__jsonl='{"text": "t", "title": null}')))[0] == "x.jsonl/1"


def test_charsets_are_never_fatal(tmp_path: Path) -> None:
    declared = b'<meta charset="windows-1251"><p>\xea\xe8\xf2</p>'
    assert said(only(put(tmp_path / "1", x__html=declared)))[1] == "кит"
    assert said(only(put(tmp_path / "2", x__html=b"<p>na\xefve</p>")))[1] == "naïve"
    assert said(only(put(tmp_path / "3", x__html=b'<meta charset="no-such"><p>na\xefve</p>')))[1] == "naïve"
    assert said(only(put(tmp_path / "4", x__txt="\ufeffwhale")))[0] == "whale"
    assert "wh" in said(only(put(tmp_path / "5", x__txt=b"\x81\xffwh")))[1]


@pytest.mark.parametrize(
    "page",
    ["<script>" * 100_000, "<" * 1_000_000, "<div>" * 300_000 + "whale", "<style>x</style>" * 50_000, "&" * 1_000_000],
)
def test_a_hostile_page_is_read_at_once(tmp_path: Path, page: str) -> None:
    document = only(put(tmp_path, x__html=page))
    began = time.process_time()
    document_text(document, document.read())
    assert time.process_time() - began < 5


def test_a_reader_of_a_document_gets_its_bytes_and_their_type(tmp_path: Path) -> None:
    page = b"<p>na\xefve</p>"
    document = only(put(tmp_path / "1", x__html=page))
    assert page_of(document, document.read()) == ("text/html", page)
    row = only(put(tmp_path / "2", x__jsonl='{"text": "<b>é"}'))
    assert page_of(row, row.read()) == ("text/plain; charset=utf-8", "<b>é".encode())


def test_the_digest_is_that_of_names_and_contents_wherever_they_lie(tmp_path: Path) -> None:
    files = {"a__txt": "one", "b__html": "<p>two"}
    here, there = (digest_of(list_documents(put(tmp_path / name, **files))) for name in ("here", "there"))
    assert here == there
    others = [{"a__txt": "One", "b__html": "<p>two"}, {"a__txt": "one", "c__html": "<p>two"}, {"a__txt": "one"}]
    others.append({"a__txt": "one", "b__html": "<p>two", "c__txt": ""})
    digests = {digest_of(list_documents(put(tmp_path / str(number), **each))) for number, each in enumerate(others)}
    assert len(digests) == 4 and here not in digests


def test_names_are_written_so_that_they_are_addresses(tmp_path: Path) -> None:
    (tmp_path / "ä ö#1%?.txt").write_text("x")
    assert only(tmp_path).url == "corpus:%C3%A4%20%C3%B6%231%25?.txt"


def test_an_address_that_two_lines_share_names_the_first(tmp_path: Path) -> None:
    row = json.dumps({"text": "x", "url": "https://a.example/"})
    odd = json.dumps({"text": "x", "url": "zoo.txt"})
    folder = put(tmp_path, x__jsonl=f"{row}\n{row}\n{odd}\n", zoo__txt="x")
    assert [document.name for document in list_documents(folder)] == [
        "https://a.example/",
        "x.jsonl/2",
        "x.jsonl/3",
        "zoo.txt",
    ]


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", secret__txt="x", x__txt="x")
    folder = put(tmp_path / "corpus", inside__txt="x")
    os.symlink(outside / "secret.txt", folder / "link.txt")
    os.symlink(outside, folder / "linked")
    os.symlink(folder / "inside.txt", folder / "twin.txt")
    os.symlink(folder / "nowhere.txt", folder / "broken.txt")
    os.mkfifo(folder / "pipe.txt")
    assert [document.name for document in list_documents(folder)] == ["inside.txt", "twin.txt"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "expected documents"),
        ({"x__png": "x"}, "expected documents"),
        ({"x__jsonl": '{"text": "a"}\n{"text": '}, r"x\.jsonl, line 2 is no JSON"),
        ({"x__jsonl": '{"title": "a"}'}, r"line 1: expected"),
        ({"x__jsonl": '{"text": "a", "url": 7}'}, r"line 1: expected"),
        ({"x__jsonl": "7"}, r"line 1: expected"),
        ({"x__txt": b"x" * (5 << 20) + b"x"}, "more than 5 MiB"),
        ({"x__jsonl": '{"text": "a"}\n{"text": "' + "x" * (5 << 20) + '"}'}, "line 2 has more than 5 MiB"),
    ],
)
def test_what_is_no_corpus_is_refused_with_the_place(tmp_path: Path, files: dict[str, str | bytes], told: str) -> None:
    put(tmp_path, **files)
    with pytest.raises(CorpusError, match=told) as refused:
        list_documents(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="expected a folder"):
        list_documents(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_can_not_be_read_is_refused_and_not_left_out(tmp_path: Path) -> None:
    put(tmp_path, a__txt="x", closed_in_b__txt="x")
    (tmp_path / "closed").chmod(0)
    try:
        with pytest.raises(CorpusError, match="closed can't be read"):
            list_documents(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)
