"""MillStone's part of a prepared run, of the tables of its scores, and of load tests.

Owns the checks of its options and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from ... import fixtures
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR
from ...engine.limits import Lack, Quota, Tokens, declared_quota
from ...engine.pairs import Pair
from ...engine.runs.run_folder import read_manifest
from ...format import count_text, decimal_text
from ...metrics.millstone.figures import SCORED, SCORES
from ...report.interval_text import interval_cell, single_figures
from ...wiring import Settings
from ..evaluation.door.benchmark import LoadPrompts, RunBasis
from ..evaluation.door.expected import Remainder
from ..evaluation.door.item_set import ItemSet
from ..evaluation.door.kept_options import kept_options
from .dataset import CONTROVERSIAL_OR_ALL, DatasetError, IssueDataset, load, select
from .grid import Grid, GridItem, about_chars, longest_prompt
from .labels import compared, corrected
from .options import Options, Readings
from .prompts import Lengths
from .reference import CONTROVERSIAL
from .sample import sample_ids

if TYPE_CHECKING:
    from ...metrics.millstone.silence import Silence

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "millstone"
_Run = TypeVar("_Run", bound=RunBasis)
INTERVAL = "95% interval of OM over issues"
COLUMNS = (*(score.title for score in SCORES), INTERVAL, "issues", *(figure.title for figure in SCORED))
# A model that has never answered is given up after twenty identical rejections: these must be spread over the grid, not
# come from one issue whose words the model rejects.
_SPREAD = 20
LITERAL = "--silence literal: silence is scored as the authors' script scores it, as if it were a position of its own"


class GridItems(ItemSet):
    """The prompts of a run, which are built when they are asked: the grid over the issues that its options choose."""

    ids_are = "expected issue/template/config/trial, as"
    have_changed = "the data set has changed since the run began, and its prompts may have"

    def __init__(self, run: Options) -> None:
        path = SAMPLE if run.dataset is None else Path(run.dataset)
        loaded = _load(path)
        right = corrected(loaded)
        dataset = select(right if run.fix_orientation else loaded, run.issues, run.limit)
        labels = compared(select(loaded, run.issues, run.limit), range(1, run.templates + 1))
        self.path = path
        self.labels = structs.replace(labels, is_corrected=run.fix_orientation)
        self.grid = Grid(dataset, run)
        self.lines = len(self.grid)
        self.digest = dataset.digest
        self.notes = tuple(_notes(run, path, loaded))
        self.dataset = {
            "path": str(path),
            "name": dataset.name,
            "digest": dataset.digest,
            "issues": len(dataset.issues),
            "labels": {
                **self.labels.as_json(),
                "digest_as_given": loaded.digest,
                "digest_by_wording": right.digest,
            },
        }

    @cached_property
    def steps(self) -> Mapping[str, int]:  # type: ignore[override]
        """Made when it is first needed: a hundred thousand ids."""
        return dict.fromkeys(self.grid.ids(), 1)

    @cached_property
    def longest_prompt(self) -> tuple[int, str]:
        return longest_prompt(self.grid)

    @property
    def most_chars(self) -> int:
        """More characters than any prompt has, for which none is drawn."""
        return max(Lengths(issue, self.grid.citations).most for issue in self.grid.dataset.issues)

    def __len__(self) -> int:
        return self.lines

    def left(self, skip: Callable[[str], bool], *, is_untried: bool = False) -> Iterator[GridItem]:
        return self.grid.spread_first(_SPREAD, skip) if is_untried else self.grid.items(skip)

    def whole(self) -> Remainder:
        return Remainder(self.lines, about_chars(self.grid))

    def longest(self) -> Iterator[GridItem]:
        yield max(self.grid, key=lambda item: len(item.prompt.encode()))

    def sample(self, size: int) -> list[str]:
        return sample_ids(self.grid, size)


def _notes(run: Options, path: Path, dataset: IssueDataset) -> Iterator[str]:
    if run.dataset is None:
        yield (
            f"no --dataset: using the {count_text(len(dataset.issues), 'sample issue')} (not the paper's). `millstream "
            "data millstone` makes the paper's from a checkout of the authors' files"
        )
    if run.issues == CONTROVERSIAL_OR_ALL and not {issue.id for issue in dataset.issues} & set(CONTROVERSIAL):
        yield f"{path} has none of the paper's controversial issues: all its issues are asked in their place"


def millstone_run(run: _Run) -> _Run:
    """Returns a run with what is MillStone's own: its readings, warnings on labels, and the options that make the same
    prompts again. Raises UsageError if a prompt fits into no minute of its lane."""
    items, options = run.items, run.options
    assert isinstance(items, GridItems)
    _check_prompts_fit_quotas(items, run.limits, run.settings)
    return structs.replace(
        run,
        readings=Readings(silence=options.silence),
        kept={**run.kept, "millstone": _as_resumed(options, items.grid.dataset, items.path)},
        warnings=tuple(items.labels.lines(items.path)),
    )


def remarks_of(part: Mapping[str, Any]) -> Iterator[str]:
    """Yields the remarks to read before the scores; first the reading of silence, if it is not the default."""
    if part["silence"] == "literal":
        yield LITERAL
    for model, entry in part["models"].items():
        yield from entry["remarks"]
        figures = {issue: of_issue["om"] for issue, of_issue in entry["issues"].items()}
        yield from single_figures(model, entry, figures, 3)


def score_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a model's row under COLUMNS."""
    scored, unscored = entry.get("issues_scored", 0), len(entry.get("unscored_issues", ()))
    return (
        *(decimal_text(entry.get(score.key), 3) for score in SCORES),
        interval_cell(entry, 2),
        f"{scored:,} of {scored + unscored:,}",
        *(decimal_text(entry.get(figure.key), 0 if figure.kind == "count" else 1) for figure in SCORED),
    )


def dataset_of(manifest: Mapping[str, Any]) -> IssueDataset:
    """Returns the data set of a run with the labels that it used. Raises DatasetError or OSError if it can't be
    read."""
    kept = kept_options(manifest, "millstone")
    loaded = load(SAMPLE if kept.get("dataset") is None else Path(kept["dataset"]))
    return corrected(loaded) if kept.get("fix_orientation") else loaded


def other_labels(folder: Path, dataset: Mapping[str, Any], difference: Mapping[str, Any]) -> str:
    """Returns why a command can't continue a folder whose run differs only in how labels are read; empty if more
    differs. `dataset`: what the command's manifest would hold; `difference`: what differs from the folder's
    specification."""
    labels = dataset.get("labels")
    if not labels or set(difference) != {"data"}:
        return ""
    there = read_manifest(folder)["specification"].get("data")
    if there == labels["digest_as_given"]:
        there_used, used, instead = "as given", "by their wording (--fix-orientation)", "leave --fix-orientation out"
    elif there == labels["digest_by_wording"]:
        there_used, used, instead = "by their wording (--fix-orientation)", "as given", "add --fix-orientation"
    else:
        return ""
    return (
        f"{folder} holds a run that read its orientation labels {there_used}, and this command reads them {used}: the "
        f"scores differ, so choose another --out (the answers are in the cache), or {instead}"
    )


def _load(path: Path) -> IssueDataset:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, got: {error.strerror}") from error


def _check_prompts_fit_quotas(items: GridItems, limits: Mapping[Pair, int | None], settings: Settings) -> None:
    """Raises UsageError if a prompt needs more tokens than a lane may send in a minute."""
    quotas = {pair: declared_quota(settings.lane_of(pair.model)) for pair in limits}
    is_limited = any(quota.least_tokens < float("inf") for quota in quotas.values())
    if not is_limited or not any(_lacking(items.most_chars, limits, quotas)):
        return
    chars, where = items.longest_prompt
    for pair, lack in _lacking(chars, limits, quotas):
        raise UsageError(
            f"prompt {where} needs about {lack.needed:,} {lack.what}; lane {pair.model} admits at most "
            f"{lack.most:,.0f} a minute: raise {lack.name} or cut the prompt"
        )


def _lacking(
    chars: int, limits: Mapping[Pair, int | None], quotas: Mapping[Pair, Quota]
) -> Iterator[tuple[Pair, Lack]]:
    """Yields the pairs whose quotas don't admit a prompt of so many characters."""
    for pair, limit in limits.items():
        needed = Tokens(round(chars * TOKENS_PER_CHAR), limit or OUTPUT_FIRST)
        if (lack := quotas[pair].lacks(needed)) is not None:
            yield pair, lack


def _as_resumed(run: Options, dataset: IssueDataset, path: Path) -> dict[str, Any]:
    """Returns the options that make the same prompts again: the ids of the issues stand in place of a file of ids."""
    options = kept_of(run)
    options["issues_asked"], options["limit_asked"] = options["issues"], options.pop("limit")
    options["issues"] = ",".join(issue.id for issue in dataset.issues)
    options["dataset"] = None if run.dataset is None else str(path)
    return options


def silence_of(manifest: Mapping[str, Any]) -> Silence:
    """Returns a run's reading of silence; "unscored" if the manifest has none."""
    return "literal" if kept_options(manifest, "millstone").get("silence") == "literal" else "unscored"


# Enough prompts to include all kinds of a grid, few enough to be held in memory.
GRID_MOST = 5_000


def load_prompts(dataset: Path | None) -> LoadPrompts:
    """Returns the prompts of a run over a data set (None: the sample), or 5,000 of them spread over the whole grid if
    there are more."""
    grid = Grid(load(dataset or SAMPLE))
    wanted = set(sample_ids(grid, GRID_MOST))
    prompts = [item.prompt for item in grid.items(lambda item_id: item_id not in wanted)]
    many = f"{len(prompts):,}" if len(prompts) == len(grid) else f"{len(prompts):,} of the {len(grid):,}"
    labels = compared(grid.dataset, range(1, grid.templates + 1))
    differ = f"; its {labels.used} (a load test reads no label)" if labels.mismatches else ""
    return LoadPrompts(prompts, f"{many} prompts of MillStone's grid ({grid.dataset.name}){differ}")
