"""A sample of a grid: spread over everything, the same everywhere, and each item as likely as any other."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from millstream.bench.millstone.dataset import IssueDataset, load
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.options import GridOptions
from millstream.bench.millstone.sample import sample_ids
from millstream.bench.millstone.work import SAMPLE


@pytest.fixture(scope="module")
def grid() -> Grid:
    return Grid(load(SAMPLE), GridOptions(templates=5, trials=4))


def counts(ids: list[str], part: int) -> Counter[str]:
    """How often each issue (0), template (1), configuration (2) or trial (3) was chosen."""
    return Counter(item_id.split("/")[part] for item_id in ids)


@pytest.mark.parametrize("size", [1, 7, 11, 60, 200, 1_000])
def test_issues_templates_and_configurations_are_each_chosen_equally_often(grid: Grid, size: int) -> None:
    ids = sample_ids(grid, size)
    assert len(set(ids)) == len(ids) == size
    for part, there_are in enumerate((len(grid.dataset.issues), grid.templates, len(grid.configs))):
        found = counts(ids, part)
        assert max(found.values()) - min(found.values()) <= 2
        assert len(found) == min(size, there_are)


def test_trials_are_spread(grid: Grid) -> None:
    found = counts(sample_ids(grid, 800), 3)
    assert sorted(found) == ["0", "1", "2", "3"]
    assert max(found.values()) < 1.3 * min(found.values())


def test_each_beginning_is_the_smaller_sample(grid: Grid) -> None:
    ids = sample_ids(grid, 300)
    assert [sample_ids(grid, size) for size in (1, 50, 299)] == [ids[:1], ids[:50], ids[:299]]


@pytest.mark.parametrize("more", [0, 1, 1_000_000])
def test_a_sample_as_large_as_the_grid_or_larger_is_the_grid(tiny: IssueDataset, more: int) -> None:
    grid = Grid(tiny, GridOptions(protocol="released", templates=2, trials=3))
    ids = sample_ids(grid, len(grid) + more)
    assert sorted(ids) == sorted(grid.ids()) and ids != list(grid.ids())


def test_the_sample_is_pinned(tiny: IssueDataset) -> None:
    assert sample_ids(Grid(tiny), 6) == [
        "bells/5/clear-pro-2/10",
        "tea/6/balanced-2/11",
        "bells/4/one-sided-con/0",
        "tea/5/clear-con-2/1",
        "bells/3/baseline/5",
        "tea/4/clear-pro-2/6",
    ]


def test_every_item_is_as_likely_as_any_other(tiny: IssueDataset) -> None:
    draws, size = 4_000, 5
    seen: Counter[str] = Counter()
    for number in range(draws):
        grid = Grid(structs.replace(tiny, draw_digest=str(number)), GridOptions(templates=2, trials=2))
        seen.update(sample_ids(grid, size))
    ids = list(Grid(tiny, GridOptions(templates=2, trials=2)).ids())
    expected = draws * size / len(ids)
    assert sum((seen[item_id] - expected) ** 2 / expected for item_id in ids) < 1.6 * len(ids)


def test_another_data_set_has_another_sample(tiny: IssueDataset) -> None:
    samples = [sample_ids(Grid(structs.replace(tiny, draw_digest=digest)), 20) for digest in ("one", "two")]
    assert samples[0] != samples[1]
