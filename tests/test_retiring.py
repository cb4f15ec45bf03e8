"""The check of a release names the models in README, docs and examples that retire soon, but not the papers' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from ci_programs import HOME, ci_program

from millstream.engine.prices import PriceSource
from millstream.providers.models import ModelRow, ModelTable

pytestmark = pytest.mark.skipif(not (HOME / "retiring.py").exists(), reason="an archive without .ci")

TABLE = ModelTable(
    vendors=("lab",),
    offering=(),
    thinking_answer=(300, 3_000),
    same={},
    sources={"list": PriceSource("2026-11-01", "a list")},
    models={
        "lab/old": ModelRow(source="list", retires="2027-01-14"),
        "lab/new": ModelRow(source="list", thinks=True),
    },
    families=(),
)


def lines(home: Path, day: str) -> list[str]:
    return list(ci_program("retiring").retiring(home, TABLE, day))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "interfaces").mkdir()
    (tmp_path / "bench/one").mkdir(parents=True)
    (tmp_path / "README.md").write_text(
        "`millstream run x --model lab/new lab/old-20260101`\nThe paper asked lab/old.\n"
    )
    (tmp_path / "docs/using.md").write_text('model = "lab/old"\nsee docs/old and http://lab/older\n')
    (tmp_path / "interfaces/run.py").write_text('EXAMPLES = ("run x --model lab/old",)\n')
    asked = '[run]\n[[run.one]]\nmodel = ["lab/old"]  # lab/old-20260101 is a snapshot; instead: {}\n'
    (tmp_path / "bench/one/reproduce.toml").write_text(asked.format("lab/new"))
    return tmp_path


def test_names_in_pages_and_examples_are_listed_sixty_days_before(home: Path) -> None:
    assert lines(home, "2026-11-14") == []
    sentence = "retires on 2027-01-14: nothing answers under its name from then on"
    assert lines(home, "2026-11-15") == [
        f"README.md:1: lab/old-20260101 {sentence}",
        f"docs/using.md:1: lab/old {sentence}",
        f"interfaces/run.py:1: lab/old {sentence}",
    ]


def test_what_a_reproduce_file_recommends_is_listed_and_what_it_asks_is_not(home: Path) -> None:
    path = home / "bench/one/reproduce.toml"
    path.write_text(path.read_text().replace('["lab/old"]', '"lab/new"'))
    assert [line.partition(":")[0] for line in lines(home, "2027-01-14")][2] == "bench/one/reproduce.toml"


def test_every_file_of_this_repository_can_be_read() -> None:
    program = ci_program("retiring")
    assert HOME.parent / "README.md" in list(program.files(HOME.parent))
    assert program.main([]) == 0
