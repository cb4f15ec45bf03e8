"""Every snippet of docs/embedding.md is run, as a reader would paste it: pasted.py has the rules for its sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Provider, simulated_provider
from pasted import Reader, is_as_told, sections_of

PAGE = Path(__file__).parent.parent / "docs" / "embedding.md"
SECTIONS = sections_of(PAGE.read_text("utf-8"))


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with simulated_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("title", SECTIONS)
def test_the_snippets_of_a_section_do_what_the_page_says(title: str, provider: Provider, tmp_path: Path) -> None:
    reader = Reader(tmp_path, provider)
    try:
        for block in SECTIONS[title]:
            reader.take(block)
    finally:
        reader.end()


def test_every_section_has_a_snippet_and_every_block_a_language() -> None:
    assert [title for title, blocks in SECTIONS.items() if not blocks] == []
    fences = re.findall(r"^```(.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert all(fences[0::2]) and not any(fences[1::2])


def test_every_way_in_the_table_leads_to_a_section() -> None:
    links = re.findall(r"\]\(#([\w-]+)\)", PAGE.read_text("utf-8"))
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in SECTIONS}
    assert links != [] and set(links) <= anchors


@pytest.mark.parametrize(
    ("expected", "printed", "verdict"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("a …c\n", "a bbb c\n", True),
        ("a …c\n", "a b\nc\n", False),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nz\n", True),
        ("a.b\n", "axb\n", False),
        ("a  b\n", "a b\n", True),
        ("a … c\n", "a    b    c\n", True),
        ("a b\n", "ab\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(expected: str, printed: str, verdict: bool) -> None:
    assert is_as_told(expected, printed) is verdict


def test_a_snippet_that_fails_or_prints_something_else_is_noticed(provider: Provider, tmp_path: Path) -> None:
    page = "## One\n\n```sh\nexport WORD=hello\n```\n\n```python\nimport os\nprint(os.environ['WORD'])\n```\n"
    told = sections_of(f"{page}```text\nhello\n```\n```sh\nfalse\ntrue\n```\n")["One"]
    reader = Reader(tmp_path, provider)
    reader.take(told[0])
    reader.take(told[1])
    with pytest.raises(AssertionError, match="came\nhello"):
        reader.take(told[1]._replace(expected="bye\n"))
    with pytest.raises(AssertionError, match="exit code 1 of\nfalse"):
        reader.take(told[2])
