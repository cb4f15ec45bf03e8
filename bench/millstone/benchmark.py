"""MillStone's implementation of the benchmark protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...configuration.errors import UsageError
from ...engine.call import Call, Outcome
from ...engine.pairs import Pair
from ...engine.remarks import remark
from ..evaluation.door.benchmark import ItemBenchmark, LoadPrompts, PublishedCounts, RunBasis
from ..evaluation.door.item import Item
from ..evaluation.door.run_counts import entry_of
from ..evaluation.door.treatments import specified_pairs
from .grid import GridItem, default_max_tokens, limit_name
from .labels import labels_used
from .options import DATA, PROMPTS, TITLE, Options
from .options import Readings as GridReadings
from .records import GridLine, record
from .records import Record as GridRecord
from .shown_items import GridReader
from .work import COLUMNS, GridItems, millstone_run, other_labels, remarks_of, score_cells, silence_of

if TYPE_CHECKING:
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ..evaluation.door.expected import Expected
    from ..evaluation.door.label import Labeller
    from ..evaluation.door.listed_run import ListedRun
    from ..evaluation.door.run_figures import RunFigures
    from ..evaluation.door.served_rows import ScoredRun
    from .published_counts import CountsTable
    from .recount import GridTally
    from .report.folders import AnswerFolder

_Run = TypeVar("_Run", bound=RunBasis)
# What a manner says of a run's rows, which are compared one by one.
_OF_ROWS = ("issues", "temperatures", "reasoning efforts")


def _score_counts(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    from .score_table import score_counts

    _check_counts_have(given)
    return score_counts(path, GridReadings(**given))


def _read_counts(path: Path, given: Mapping[str, Any]) -> CountsTable:
    from .published_counts import read_counts

    _check_counts_have(given)
    return read_counts(path)


def _check_counts_have(given: Mapping[str, Any]) -> None:
    """Raises UsageError if a given reading needs more than counts."""
    if given.get("fix_orientation"):
        raise UsageError("--fix-orientation: expected records, which tell their letters, got --counts, which have none")
    if given.get("stance"):
        raise UsageError("--stance: expected records, whose texts can be read anew, got --counts, which have none")


class MillStone(ItemBenchmark[GridRecord]):
    name = "millstone"
    compares_runs = True
    title = TITLE
    unit = "prompt"
    columns = COLUMNS
    kept_instead = "the run's own reading; these scores are only shown"
    Options = Options
    Readings = GridReadings
    Record = GridRecord
    Line = GridLine
    prompts = PROMPTS
    data = DATA
    categories = ("issue", "config", "orientation", "letter", "stance")
    unit_name = "issue"
    counts = PublishedCounts(_score_counts, _read_counts)

    def items(self, options: Any) -> GridItems:
        return GridItems(options)

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        assert isinstance(item, GridItem)
        return Call(
            pair.model,
            item.prompt,
            temperature=pair.temperature,
            max_tokens=options.max_tokens,
            reasoning_effort=pair.effort,
            trial=item.sample,
            tag=item,
        )

    def line_of(self, outcome: Outcome, options: Any) -> GridRecord:
        return record(outcome, options.stance)

    def max_tokens_of(
        self, options: Any, pair: Pair, begun: Mapping[str, int | None], *, thinks: bool | None = None
    ) -> int | None:
        # Decided once: a run that goes on keeps what it began with, whatever the table of models says of them by now.
        unset = begun[name] if (name := limit_name(pair)) in begun else default_max_tokens(pair.model, thinks)
        return unset if options.max_tokens is None else options.max_tokens

    def specification(self, run: RunBasis) -> dict[str, Any]:
        assert isinstance(run.items, GridItems)
        return {
            "benchmark": self.name,
            **run.items.grid.specification(),
            **specified_pairs(run.pairs),
            "endpoints": dict(run.endpoints),
            "max_tokens": {limit_name(pair): limit for pair, limit in run.limits.items()},
            "stance": run.options.stance,
        }

    def completed(self, run: _Run) -> _Run:
        return millstone_run(run)

    def tally(self, run: ScoredRun) -> GridTally:
        from .recount import GridTally

        return GridTally(run)

    def readings_of(self, manifest: Mapping[str, Any] | None) -> GridReadings:
        return GridReadings(silence=silence_of(manifest or {}))

    def caveats(self, manifest: Mapping[str, Any] | None, readings: Any) -> Sequence[str]:
        labels = labels_used(manifest, is_corrected=readings.fix_orientation)
        return [labels.used] if labels and labels.is_remarkable else []

    def remarks(self, part: Mapping[str, Any]) -> Iterable[str]:
        return remarks_of(part)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return score_cells(entry)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        return other_labels(folder, dataset, error.asked) or str(error)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "issue" in fields

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import score_text

        return score_text(source, scores)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .manner import manner_of_source

        return manner_of_source(source, scores, is_recorded="stance" not in given)

    def run_figures(self, run: ScoredRun) -> RunFigures:
        from ..evaluation.running.scored_figures import scored_figures

        def of_issues(part: Mapping[str, Any], pair: Pair) -> dict[str, float | None]:
            return {issue: entry["om"] for issue, entry in entry_of(part, pair).get("issues", {}).items()}

        return scored_figures(self, run, of_issues, of="issues", within=(0, 100), left_out=_OF_ROWS)

    def forecast(self, run: RunBasis, expected: Expected) -> Expected:
        labels = run.items.dataset["labels"]
        if labels["differ"] or labels["unread"]:
            expected.remarks.append(labels["summary"])
        expected.what = f"{run.total:,} prompts"
        expected.more = {"prompts": run.total}
        return expected

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> AnswerFolder:
        from .report.folders import read

        run = read(path, manifest, GridReadings(**given))
        if run.labels and run.labels.is_remarkable:
            remark(f"{path}: {run.labels.used}")
        return run

    def report(
        self, runs: Sequence[AnswerFolder | CountsTable], given: Mapping[str, Any], flags: Sequence[str]
    ) -> PageContents:
        from .published_counts import CountsTable
        from .report.part import page_contents

        folders = [run for run in runs if not isinstance(run, CountsTable)]
        tables = [run for run in runs if isinstance(run, CountsTable)]
        return page_contents(self, folders, GridReadings(**given), flags, tables)

    def listed(self, manifest: Mapping[str, Any]) -> ListedRun:
        from .proof import listed_grid

        return listed_grid(manifest)

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        return super()._words_of({**kept, "issues": kept.get("issues_asked"), "limit": kept.get("limit_asked")})

    def item_reader(self, manifest: Mapping[str, Any] | None) -> GridReader:
        return GridReader(manifest)

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        from .work import load_prompts

        return load_prompts(dataset)

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        from .review import labeller

        return labeller(manifest, is_shown=is_shown)


BENCHMARK = MillStone()
