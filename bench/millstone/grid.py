"""The grid: every prompt of a run in its pinned order, lazily, with the rank that distinguishes identical prompts.

Owns the protocols' tables of configurations, the items' ids and the calls made from them. Order, ids, draws and ranks
never depend on what was already sent. Knows no provider and sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, product
from typing import Any, Literal, NamedTuple

from msgspec import Struct, structs

from ...configuration.declared_options import read_kept, specified
from ...engine.pairs import Pair
from ..evaluation.door.item import Item
from .dataset import IssueDataset
from .draws import DRAW_VERSION, Draw, Shape, draw, is_list_drawn, list_of, seeds
from .issue import Issue, Side
from .options import GridOptions
from .prompts import (
    PROMPT_VERSION,
    Citations,
    Lengths,
    Sheet,
    Wrapping,
    fingerprint_of,
    text_of,
    weight_of_prompt,
)

Protocol = Literal["paper", "released"]

_FIRST = ("protocol", "templates", "trials")
_WHOLE = GridOptions()


class Config(Struct, frozen=True):
    """One argument configuration: the `shape` says which arguments a prompt holds, the `wrapping` which words surround
    them. Configurations of one `case` share their draws."""

    name: str
    case: str
    shape: Shape
    wrapping: Wrapping


def _paper(shape: Shape, draws: int) -> tuple[Config, ...]:
    wrapping: Wrapping = "baseline" if shape == "baseline" else "W1"
    names = [shape] if draws == 1 else [f"{shape}-{number}" for number in range(1, draws + 1)]
    return tuple(Config(name, name, shape, wrapping) for name in names)


def _released(shape: Shape) -> tuple[Config, ...]:
    return (Config(f"{shape}-1", shape, shape, "W1"), Config(f"{shape}-2", shape, shape, "W2"))


CONFIGS: Mapping[Protocol, tuple[Config, ...]] = {
    "paper": (
        *_paper("baseline", 1),
        *_paper("one-sided-pro", 1),
        *_paper("one-sided-con", 1),
        *_paper("clear-pro", 2),
        *_paper("clear-con", 2),
        *_paper("balanced", 4),
    ),
    "released": (
        Config("baseline-1", "baseline", "baseline", "baseline"),
        *_released("one-sided-pro"),
        *_released("one-sided-con"),
        *_released("clear-pro"),
        *_released("clear-con"),
        *_released("balanced"),
    ),
}


class GridItem(Item, frozen=True, kw_only=True):
    """One prompt of the grid: an item of one call. `template` counts from 1, `trial` from 0; `orientation` is the side
    that answering A means, `arguments` are the ids of those shown. `sample` is its rank, from 0, among all items of the
    grid with an identical prompt, `weight` what `estimate.weight_of` gives for the prompt."""

    issue: str
    template: int
    config: str
    trial: int
    orientation: Side
    arguments: tuple[str, ...]
    prompt: str
    weight: int
    sample: int


class _Cell(NamedTuple):
    """A cell of the grid: all trials of one issue, template and configuration. `sides` are those of the issue, `name`
    is the beginning of its items' ids."""

    issue: Issue
    sides: tuple[int, int]
    sheet: Sheet
    template: int
    config: Config
    name: str

    def id(self, trial: int) -> str:
        return f"{self.name}/{trial}"


def _name(issue: Issue, template: int, config: Config) -> str:
    return f"{issue.id}/{template}/{config.name}"


class Grid:
    """The prompts of one protocol over one data set, ordered by issue, template, configuration and trial: the first
    `templates` wordings of each question, and `trials` prompts of each configuration."""

    def __init__(self, dataset: IssueDataset, options: GridOptions = _WHOLE) -> None:
        self.dataset = dataset
        self.options = options
        self.templates, self.trials = options.templates, options.trials
        # The authors' script lets an argument repeat the citations of those before it.
        self.citations: Citations = "cumulative" if options.protocol == "released" else "own"
        self.configs = CONFIGS[options.protocol]

    def __len__(self) -> int:
        return len(self.dataset.issues) * self.templates * len(self.configs) * self.trials

    def __repr__(self) -> str:
        return (
            f"<Grid [{self.options.protocol}: {len(self.dataset.issues)} issues x {self.templates} templates"
            f" x {len(self.configs)} configurations x {self.trials} trials = {len(self):,} prompts]>"
        )

    def __iter__(self) -> Iterator[GridItem]:
        return self.items()

    def items(self, skip: Callable[[str], bool] | None = None) -> Iterator[GridItem]:
        """Yields the items, except those for whose ids `skip` returns True. Skipped items count in the ranks, but their
        prompts are not built."""
        return self._items(self._cells(), skip)

    def spread_first(self, count: int, skip: Callable[[str], bool]) -> Iterator[GridItem]:
        """Yields the items that are not skipped: an item each of up to `count` issues, then all others in order."""
        ids: set[str] = set()

        def first() -> Iterator[GridItem]:
            for item in self.spread(count, skip):
                ids.add(item.id)
                yield item

        return chain(first(), self.items(lambda name: name in ids or skip(name)))

    def spread(self, count: int, skip: Callable[[str], bool] | None = None) -> Iterator[GridItem]:
        """Yields an item each, the first one not skipped, of at most `count` issues that are spread evenly over the
        grid."""
        issues = self.dataset.issues
        times: dict[str, int] = {}
        for issue in issues:
            for question in {paraphrase.question for paraphrase in issue.paraphrases}:
                times[question] = times.get(question, 0) + 1
        # Ranks count over the whole grid, but only issues that share a question can share a prompt.
        alone = [issue for issue in issues if all(times[each.question] == 1 for each in issue.paraphrases)]
        count = min(count, len(alone))
        for place in range(count):
            yield from islice(self._items(self._cells_of(alone[place * len(alone) // count]), skip), 1)

    def _items(self, cells: Iterable[_Cell], skip: Callable[[str], bool] | None) -> Iterator[GridItem]:
        seen: dict[int, int] = {}
        for cell in cells:
            issue, template, config = cell.issue, cell.template, cell.config
            orientation = issue.paraphrases[template - 1].orientation
            argument_ids = [argument.id for argument in issue.arguments]
            for trial, drawn in enumerate(self._draws(cell)):
                parts = cell.sheet.parts(template, config.wrapping, drawn)
                fingerprint = fingerprint_of(parts)
                sample = seen.get(fingerprint, 0)
                seen[fingerprint] = sample + 1
                item_id = cell.id(trial)
                if skip is None or not skip(item_id):
                    prompt = text_of(parts)
                    yield GridItem(
                        id=item_id,
                        issue=issue.id,
                        template=template,
                        config=config.name,
                        trial=trial,
                        orientation=orientation,
                        arguments=tuple([argument_ids[index] for index in drawn.shown]),
                        prompt=prompt,
                        weight=len(prompt) if prompt.isascii() else weight_of_prompt(parts),
                        sample=sample,
                    )

    def ids(self) -> Iterator[str]:
        """Yields every item's id in order, without drawing arguments."""
        return (cell.id(trial) for cell in self._cells() for trial in range(self.trials))

    def shown(self) -> Iterator[tuple[str, Side, tuple[str, ...]]]:
        """Yields every item's id, orientation and arguments in order, without building its prompt."""
        for cell in self._cells():
            orientation = cell.issue.paraphrases[cell.template - 1].orientation
            ids = [argument.id for argument in cell.issue.arguments]
            for trial, drawn in enumerate(self._draws(cell)):
                yield cell.id(trial), orientation, tuple([ids[index] for index in drawn.shown])

    def prompts(self, issue: str, template: int, config: str) -> list[str]:
        """Returns the prompts of all trials of a cell; none if the grid has no such cell."""
        chosen = (each for each in self.dataset.issues if each.id == issue)
        cells = (cell for each in chosen for cell in self._cells_of(each))
        for cell in cells:
            if (cell.template, cell.config.name) == (template, config):
                wrapping = cell.config.wrapping
                return [text_of(cell.sheet.parts(template, wrapping, drawn)) for drawn in self._draws(cell)]
        return []

    def specification(self) -> dict[str, Any]:
        """Returns the values that decide the prompts, for the manifest of a run."""
        return {
            "data": self.dataset.digest,
            "issues": [issue.id for issue in self.dataset.issues],
            **specified(self.options, GridOptions, _FIRST),
            "citations": self.citations,
            "prompt_version": PROMPT_VERSION,
            "draw_version": DRAW_VERSION,
        }

    def _cells(self) -> Iterator[_Cell]:
        for issue in self.dataset.issues:
            yield from self._cells_of(issue)

    def _cells_of(self, issue: Issue) -> Iterator[_Cell]:
        sheet, sides = Sheet(issue, self.citations), issue.sides
        for template, config in product(range(1, self.templates + 1), self.configs):
            yield _Cell(issue, sides, sheet, template, config, _name(issue, template, config))

    def _seeds(self, issue: Issue, template: int, config: Config, trials: int) -> list[str]:
        return seeds(self.dataset.draw_digest, issue.id, template, config.case, range(trials))

    def _draws(self, cell: _Cell) -> list[Draw]:
        """Returns the draws of a cell's trials."""
        shape, (pros, cons) = cell.config.shape, cell.sides
        return [
            draw(seed, shape, pros, cons) for seed in self._seeds(cell.issue, cell.template, cell.config, self.trials)
        ]


def grid_of(specification: Mapping[str, Any], dataset: IssueDataset) -> Grid | None:
    """Returns the grid of a run's prompts; None if the data set is not the run's, or this version makes other prompts
    of it."""
    ids = set(specification["issues"])
    chosen = structs.replace(dataset, issues=tuple(issue for issue in dataset.issues if issue.id in ids))
    grid = Grid(chosen, read_kept(GridOptions, specification))
    is_same = all(specification.get(name) == value for name, value in grid.specification().items())
    return grid if is_same else None


_OPENAI_OR_LLAMA = re.compile(r"llama|(?:^|[/:])(?:gpt-|chatgpt-|o[0-9])")


def default_max_tokens(model: str, thinks: bool | None = None) -> int | None:
    """Returns the protocol's max_tokens by the model's name after the provider: 600, 100, or None (not sent). For
    models that think before they answer (`thinks`) it is None: so few tokens would all go into thinking."""
    if thinks:
        return None
    name = model.partition("/")[2].lower()
    if "claude" in name:
        return 600
    return 100 if _OPENAI_OR_LLAMA.search(name) else None


def limit_name(pair: Pair) -> str:
    """Returns the name under which a specification has a pair's max_tokens: it does not depend on the temperature."""
    return str(pair._replace(temperature=None))


def about_chars(grid: Grid) -> int:
    """Returns about how many characters all prompts have together: the first trial of each stands for the others."""
    return sum(lengths[0] * grid.trials for _, lengths in _lengths(grid, 1))


def longest_prompt(grid: Grid) -> tuple[int, str]:
    """Returns the characters and the id of a longest prompt."""
    name, lengths = max(_lengths(grid, grid.trials), key=lambda cell: max(cell[1]))
    return max(lengths), f"{name}/{lengths.index(max(lengths))}"


def _lengths(grid: Grid, trials: int) -> Iterator[tuple[str, list[int]]]:
    """Yields each cell's name and the characters of its prompts, for which only their lists of arguments are drawn; one
    stands for all where they can't differ."""
    for issue in grid.dataset.issues:
        of_issue, sides = Lengths(issue, grid.citations), issue.sides
        for template, config in product(range(1, grid.templates + 1), grid.configs):
            shape = config.shape
            drawn = trials if is_list_drawn(shape, *sides) else 1
            lists = [list_of(seed, shape, *sides) for seed in grid._seeds(issue, template, config, drawn)]
            lengths = [of_issue.length(template, config.wrapping, listed) for listed in lists]
            yield _name(issue, template, config), lengths
