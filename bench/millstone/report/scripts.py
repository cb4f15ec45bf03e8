"""Exact sample prompts: for each issue and case one where answering A means pro and one where it means con.

Owns which prompts are samples, and how many fit on a page. They are built again from the run's grid, which is passed
in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....format import count_text
from ....metrics.millstone.openness import CASES, case_of
from ....report.escaping import visible
from ..grid import Config, Grid
from ..issue import Issue
from .explorer import IssuePrompts, SamplePrompt

# The samples are of each case's first configuration, and of this trial.
TRIAL = 0
# Characters before compression: the prompts of all the published issues are about half of it.
PROMPT_BUDGET = 5_000_000


class Scripts:
    """The sample prompts of several runs, of the `wanted` issues and in at most `budget` characters; runs whose prompts
    are the same share them."""

    def __init__(self, grids: Sequence[Grid], wanted: set[str], budget: int = PROMPT_BUDGET) -> None:
        self.of_grids: list[Mapping[str, IssuePrompts]] = []
        self._kinds: dict[tuple[str, ...], int] = {}
        self._arguments: list[dict[str, tuple[str, ...]]] = []
        self._left, self._without = budget, 0
        for grid in grids:
            if _kind(grid) not in self._kinds:
                self._kinds[_kind(grid)] = len(self.of_grids)
                self._add(grid, wanted)

    def place_of(self, grid: Grid) -> int:
        return self._kinds[_kind(grid)]

    def of(self, place: int | None, issue: str) -> tuple[tuple[SamplePrompt, ...], ...]:
        """Returns the sample prompts of an issue, one tuple for each of CASES; empty tuples if its prompts can't be
        shown. `place`: the grid's, from `place_of` (None: it has none)."""
        script = None if place is None else self.of_grids[place].get(issue)
        return ((),) * len(CASES) if script is None else script.cases

    def names_others(self, place: int, prompt_id: str, arguments: tuple[str, ...]) -> bool:
        """Returns whether a sample prompt shows other arguments than these."""
        return self._arguments[place].get(prompt_id, arguments) != arguments

    def remarks(self) -> list[str]:
        if not self._without:
            return []
        return [f"To keep the page small, the prompts of {count_text(self._without, 'issue')} are left out."]

    def _add(self, grid: Grid, wanted: set[str]) -> None:
        scripts: dict[str, IssuePrompts] = {}
        arguments: dict[str, tuple[str, ...]] = {}
        for issue in grid.dataset.issues:
            if issue.id in wanted:
                script = _script(grid, issue, arguments)
                size = sum(map(len, script.parts))
                if size > self._left:
                    self._without += 1
                    continue
                self._left -= size
                scripts[issue.id] = script
        self.of_grids.append(scripts)
        self._arguments.append(arguments)


def _kind(grid: Grid) -> tuple[str, ...]:
    """Returns a key that is equal for grids with the same prompts under the same ids."""
    return grid.dataset.digest, grid.protocol, str(grid.templates)


def _script(grid: Grid, issue: Issue, arguments: dict[str, tuple[str, ...]]) -> IssuePrompts:
    """Returns the sample prompts of an issue; adds each prompt's arguments to `arguments`."""
    templates = _templates(grid, issue)
    configs = _first_configs(grid)
    places: dict[str, int] = {}
    cases = []
    for case in CASES:
        prompts = []
        made = grid.some(issue, [(template, configs[case], TRIAL) for template in templates])
        for template, (named, drawn, parts) in zip(templates, made, strict=True):
            prompt_id = visible(named)
            texts = tuple(places.setdefault(visible(part.text), len(places)) for part in parts)
            prompts.append(SamplePrompt(prompt_id, issue.paraphrases[template - 1].orientation, texts))
            arguments[prompt_id] = tuple(issue.arguments[index].id for index in drawn.shown)
        cases.append(tuple(prompts))
    return IssuePrompts(tuple(places), tuple(cases))


def _templates(grid: Grid, issue: Issue) -> tuple[int, ...]:
    """Returns the number of the first template of each orientation."""
    templates: dict[str, int] = {}
    for template, paraphrase in enumerate(issue.paraphrases[: grid.templates], 1):
        templates.setdefault(paraphrase.orientation, template)
    return tuple(templates.values())


def _first_configs(grid: Grid) -> dict[str, Config]:
    configs: dict[str, Config] = {}
    for config in grid.configs:
        configs.setdefault(case_of(config.name) or "", config)
    return configs
