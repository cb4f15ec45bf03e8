"""A run of a benchmark made of items: it is sent, and counted from its journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ....engine.attempts.estimate import chars_of
from ....engine.call import Call
from ....engine.fault import Stop
from ....engine.runs.pairs import FinishedItems, Pair
from ....engine.runs.run_folder import RunFolder
from ....providers.models import WINDOW
from ....providers.search.access import is_search
from ....wiring import Settings
from ..door.benchmark import ItemBenchmark
from ..door.defect import benchmark_code
from ..door.item_set import ItemSet, no_item
from ..door.judges import Judges
from ..door.prepared_run import PreparedRun
from ..door.run_items import highest_limits, other_calls, with_limit
from ..door.served_rows import ScoredRun
from ..door.work import RunCounts, entry_of
from .call_items import CallSweep
from .cost_bound import worst_costs
from .journals import read_done
from .recount import recount
from .scoring import scores_of
from .sending import SendPlan, at_once_of, send_steps_of
from .served import served_rows

if TYPE_CHECKING:
    from ....wiring.engine import Engine

_CHARS_A_TOKEN = 4


class ItemWork(Struct, frozen=True):
    """A run of a benchmark made of items, ready to be sent, counted and scored."""

    of: ItemBenchmark[Any]
    """The benchmark."""
    options: Any
    """Its options."""
    readings: Any
    """The readings of the run's own scores."""
    limits: Mapping[Pair, int | None]
    """The models and their treatments, with the max_tokens of their calls; None: none is sent."""
    item_set: ItemSet
    """The items."""
    specification: dict[str, Any]
    """The values that decide prompts and answers, as the manifest holds them."""
    settings: Settings
    """The settings by which calls are sent."""

    @property
    def benchmark(self) -> str:
        return self.of.name

    @property
    def item(self) -> str:
        return self.of.unit

    @property
    def is_item_a_call(self) -> bool:
        return self.of.has_calls

    @property
    def items(self) -> int:
        return self.item_set.lines

    @property
    def lanes(self) -> tuple[str, ...]:
        return tuple(self.max_tokens)

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return highest_limits(self.limits, other_calls(self.of, self.options))

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.of.columns

    @property
    def at_once(self) -> int:
        """The number of items of several calls that run at once."""
        settings, share = self.settings, self.of.items_per_rpm
        under_test = dict.fromkeys(pair.model for pair in self.limits)
        return at_once_of(
            ((settings.concurrency_of(model), settings.quota_of(model).rpm) for model in under_test), share
        )

    def pairs(self) -> list[Pair]:
        return list(self.limits)

    def options_of(self, pair: Pair) -> Any:
        """Returns the options with the max_tokens of a pair's calls."""
        return with_limit(self.options, self.limits[pair])

    def calls(self, pair: Pair, skip: Callable[[str], bool] = no_item) -> Iterator[tuple[str, Call]]:
        """Yields a pair's calls with their items' ids, where it is asked once for an item; none of the items that are
        skipped."""
        options = self.options_of(pair)
        for item in self.item_set.left(skip):
            yield item.id, self.of.call(item, options, pair)

    def first_calls(self) -> Iterator[Call]:
        """Yields a call to each pair with the parameters of all its calls."""
        first = next(iter(self.item_set))
        for pair, limit in self.limits.items():
            if self.of.is_asked_once:
                with benchmark_code(f"{self.of.title}, item {first.id!r}"):
                    yield self.of.call(first, self.options_of(pair), pair)
            else:
                yield _plain_call(pair, limit)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the dollars of each lane's dearest call: the one with the longest prompt, or, where prompts contain
        answers, one that fills the model's window or what the specification's `prompt_tokens` have for the lane. Lanes
        without a price are left out."""
        prices = settings.price_table()
        lanes = [lane for lane in self.lanes if prices.get(lane) is not None]
        return worst_costs((call for lane in lanes for call in self._dearest_calls(lane)), settings)

    def _dearest_calls(self, lane: str) -> Iterator[Call]:
        if self.of.is_asked_once:
            if pairs := [pair for pair in self.limits if pair.model == lane]:
                options = self.options_of(pairs[0])
                longest = max(self.item_set.longest(), key=lambda item: chars_of(self.of.call(item, options, pairs[0])))
                yield from (self.of.call(longest, self.options_of(pair), pair) for pair in pairs)
            yield from (call for call in other_calls(self.of, self.options) if call.model == lane)
        else:
            limits = self.specification.get("prompt_tokens")
            tokens = (self.settings.window(lane) or WINDOW) if limits is None else limits.get(lane, 0)
            yield Call(lane, "x" * (_CHARS_A_TOKEN * tokens), max_tokens=self.max_tokens[lane])

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder, self.of.Line)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        if self.of.reads_pages and self.settings.mode not in ("replay", "strict"):
            # Checked before anything is paid for. A replay has its texts already.
            await engine.check_pages()
        if self.of.has_calls:
            streams = {
                pair: (
                    self.item_set.left(done.of(pair).__contains__, is_untried=pair.model not in done.answered),
                    self.options_of(pair),
                )
                for pair in self.limits
            }
            return await CallSweep(self.of, engine, folder, self.options).run(streams)
        plan = SendPlan(
            self.pairs(), self.options, done, self.item_set, self.at_once, Judges(self.settings), self.specification
        )
        return await send_steps_of(self.of, engine, folder, plan, item_ended)

    def count(self, folder: RunFolder) -> RunCounts:
        journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
        steps = None if self.of.has_calls else dict.fromkeys(self.limits, self.item_set.steps)
        counted = recount(self.of.Totals(), journals, steps, self.of.Line)
        rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
        run = ScoredRun(
            folder=folder.folder,
            manifest=rows.manifest(folder.manifest),
            readings=self.readings,
            rows=rows,
            source=str(folder.records.path),
        )
        scores = scores_of(self.of, rows.lines(folder.records.read()), run)
        part = scores[self.of.scores_name(run.specification)]
        prices = self.settings.price_table()
        unpriced = [lane for lane in self.lanes if not is_search(lane) and prices.get(lane) is None]
        sentences, details = counted.summary(folder.folder, folder.manifest, unpriced)
        remarks = (*sentences, *self.of.remarks(part))
        return RunCounts(counted.pairs, scores, remarks, details, tuple(part["unmeasured"]))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return self.of.cells(entry_of(scores[self.of.scores_name(self.specification)], pair))


def _plain_call(pair: Pair, limit: int | None) -> Call:
    return Call(pair.model, "?", temperature=pair.temperature, max_tokens=limit, reasoning_effort=pair.effort)


def work_of(prepared: PreparedRun) -> ItemWork:
    work = prepared.work
    assert isinstance(work, ItemWork)
    return work
