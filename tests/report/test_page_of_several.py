"""Claims about a page that two benchmarks stand on."""

from __future__ import annotations

import re

import pytest
from chameleon_records import PERSONAS, run_records
from chameleon_run import written_run
from msgspec import structs
from page_elements import assert_only_its_own
from polls import realistic

from millstream.bench.chameleon.report.part import contents
from millstream.bench.millstone.report.part import tables_and_figures, with_sections
from millstream.report.page import page
from millstream.report.standings import AnswerStatus

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> str:
    survey, folder = realistic(), tmp_path_factory.mktemp("together")
    standings = tuple(AnswerStatus(answers.name, len(answers), len(answers)) for answers in survey.answers)
    answers = structs.replace(tables_and_figures(survey), title="MillStone: 4 models", standings=standings)
    answers = structs.replace(with_sections(answers, survey), packs={"millstone-matrix-data": ""})
    turns = contents([written_run(folder, run_records(PERSONAS, [0.0, 1.0], conversations=4, turns=4))])
    return page(f"{answers.title}; {turns.title}", [answers, turns]).decode()


def identities(made: str) -> list[str]:
    """Of the page itself, not of what stands within its scripts."""
    return re.findall(r'<[^>]* id="([^"]+)"', re.sub(r"<script>.*?</script>", "", made, flags=re.DOTALL))


def test_both_stand_on_one_page_and_no_name_is_given_twice(together: str) -> None:
    assert "<h1>MillStone: 4 models; Chameleon: 3 models in 4 conversations</h1>" in together
    found = identities(together)
    assert len(found) == len(set(found))
    for link in re.findall(r'<a href="#([^"]+)"', together):
        assert link in found
    assert '<p class="whose">MillStone</p>' in together and 'id="chameleon-summary-whose">Chameleon</p>' in together
    assert {"table-4-om", "chameleon-table-1-scores", "chameleon-matrix-data"} <= set(found)


def test_the_style_and_the_script_of_items_stand_there_once(together: str) -> None:
    assert together.count(".matrix { max-height: 36rem") == together.count("window.showItems = showItems") == 1


def test_nothing_is_allowed_but_what_stands_in_the_page(together: str) -> None:
    assert_only_its_own(together)
