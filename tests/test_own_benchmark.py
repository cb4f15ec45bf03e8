"""Every snippet of docs/your-own-benchmark.md is run, as a reader would paste it: pasted.py has the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Provider, simulated_provider
from pasted import Reader, sections_of

PAGE = Path(__file__).parent.parent / "docs" / "your-own-benchmark.md"
TEXT = PAGE.read_text("utf-8")
SECTIONS = sections_of(TEXT)
SIMULATED = {"gpt-6-luna": "pupil", "gpt-6.1-terra": "scholar", "gpt-6.2-sol": "grader"}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with simulated_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("title", SECTIONS)
def test_the_snippets_of_a_section_do_what_the_page_says(title: str, provider: Provider, tmp_path: Path) -> None:
    reader = Reader(tmp_path, provider, SIMULATED)
    try:
        for block in SECTIONS[title]:
            reader.take(block)
    finally:
        reader.end()


def test_the_first_task_has_at_most_twelve_lines() -> None:
    (task,) = [block.text for block in next(iter(SECTIONS.values())) if block.file == "capitals.py"]
    assert len(task.splitlines()) <= 12


def test_the_agent_has_25_lines_beside_its_functions_data() -> None:
    (agent,) = [block.text for block in SECTIONS["An agent in 25 lines"] if block.file == "shop.py"]
    assert len([line for line in agent.splitlines() if line.strip()]) <= 25


def test_the_class_of_the_page_is_the_one_whose_types_are_checked() -> None:
    (firm,) = [block.text for block in SECTIONS["A benchmark in a package"] if block.file == "firm/firm.py"]
    checked = Path(__file__).parent / "bench/evaluation/door/firm_benchmark.py"
    assert firm.strip() == checked.read_text("utf-8").strip()


def test_every_section_has_a_snippet_and_every_link_on_the_page_leads_to_one() -> None:
    assert [title for title, blocks in SECTIONS.items() if not blocks] == []
    links = re.findall(r"\]\(#([\w-]+)\)", TEXT)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in SECTIONS}
    assert links != [] and set(links) <= anchors
