"""Chameleon's implementation of the benchmark protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from ...configuration.declared_options import kept_of, words_kept
from ...configuration.errors import UsageError
from ...engine.call import Call
from ...engine.pairs import Pair
from ...providers.models import WINDOW, prompt_tokens
from ...providers.retrieval import CORPUS_LANE
from ...providers.search.access import is_search
from ...wiring import Settings
from ..evaluation.door.ask import Ask
from ..evaluation.door.benchmark import ItemBenchmark, LoadPrompts, Order, RunBasis
from ..evaluation.door.expected import Expected
from ..evaluation.door.item import Item
from ..evaluation.door.item_set import ItemSet
from ..evaluation.door.judges import takes_temperature
from ..evaluation.door.label import Labeller
from ..evaluation.door.run_items import items_of_run
from ..evaluation.door.served_rows import ScoredRun
from ..evaluation.planning.preparation import begun_manifest, begun_with, check_cost_is_bounded, pairs_of
from .conversation import ConversationDriver, items_of
from .dataset import load, select
from .forecast import forecast
from .options import COLUMNS, DATA, PROMPTS, TITLE, Options, PromptOptions, Readings
from .readings import readings_of, score_instead
from .records import Record as TurnRecord
from .review import exchange_of, label_of
from .run_spec import TEMPERATURES, ConversationSpec, beyond, readings_of_run, spec_in, specification
from .run_summary import TurnTotals
from .shown_items import ConversationReader
from .turn import untrue_fields
from .turn_line import TurnLine
from .work import SAMPLE, sample_corpus

if TYPE_CHECKING:
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from ..evaluation.door.judging import Judging
    from ..evaluation.door.run_figures import RunFigures
    from .report.runs import ConversationRun

_Run = TypeVar("_Run", bound=RunBasis)


class Chameleon(ItemBenchmark[TurnRecord]):
    name = "chameleon"
    compares_runs = True
    title = TITLE
    unit = "turn"
    unit_name = "conversation"
    noun_of_line = "turn"
    columns = COLUMNS
    Options = Options
    Readings = Readings
    Record = TurnRecord
    Line = TurnLine
    Totals = TurnTotals
    categories = ("conversation", "domain", "topic", "stance", "search", "query_by", "step")
    prompts = PROMPTS
    data = DATA
    temperatures = TEMPERATURES
    reads_pages = True
    # A turn asks the model under test twice and takes some half a minute.
    items_per_rpm = 0.25

    def items(self, options: Any) -> ItemSet:
        path = SAMPLE if options.dataset is None else Path(options.dataset)
        dataset = select(load(path), options.conversations)
        notes = beyond(dataset, options.turns, options.conversations)
        if options.dataset is None:
            notes.insert(
                0,
                "no --dataset: using sample conversations (not the paper's, which are not public). `millstream data "
                "chameleon` generates some by the paper's prompts",
            )
        elif options.search == CORPUS_LANE and options.corpus is None:
            notes.append("no --corpus: searching the sample articles, which are on the sample topics alone")
        return ItemSet(
            items=list(items_of(dataset, options.turns, options.order, options.seed)),
            digest=dataset.digest,
            dataset={
                "path": str(path),
                "name": dataset.name,
                "digest": dataset.digest,
                "conversations": len(dataset.conversations),
            },
            notes=tuple(notes),
            # The domains in turn.
            is_balanced=True,
        )

    def others(self, options: Any) -> Sequence[str | Call]:
        judge = Call(options.judge, "?", temperature=0.0, reasoning_effort=options.judge_reasoning_effort)
        queries = () if options.queries_by in (None, *options.model) else (options.queries_by,)
        return (judge, *queries, options.search)

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]:
        if options.search != CORPUS_LANE:
            return options, settings
        corpus = sample_corpus(settings.cache_folder()) if options.corpus is None else Path(options.corpus)
        return options, structs.replace(settings, corpus=corpus)

    def specification(self, run: RunBasis) -> dict[str, Any]:
        return specification(run.items.digest, run.items.steps, _spec_of(run), run.endpoints)

    def ordered(self, order: Order) -> tuple[Chameleon, Order]:
        options = order.run.options
        if options.retrieval == "own" and options.queries_by is not None:
            raise UsageError("--queries-by belongs to --retrieval shared: give both, or neither")
        if options.search != CORPUS_LANE and options.corpus is not None:
            raise UsageError(
                f"--corpus belongs to --search corpus, and {options.search} was asked for: leave one of them out"
            )
        return self, order

    def completed(self, run: _Run) -> _Run:
        """Returns a run with notes on windows that are not known. Raises UsageError if its cost has no bound."""
        settings, options = run.settings, run.options
        # Queries and judgements set no max_tokens.
        models = dict.fromkeys(lane for lane in run.endpoints if not is_search(lane))
        check_cost_is_bounded(models, settings, has_option=False)
        readers = dict.fromkeys((*options.model, options.judge))
        if options.window is not None or not (
            unknown := [model for model in readers if settings.facts_of(model).window is None]
        ):
            return run
        note = f"context window of {', '.join(unknown)} unknown; assuming {WINDOW:,} tokens (set --window)"
        return structs.replace(run, notes=(*run.notes, note))

    def run(
        self, item: Item, ask: Ask, done: Mapping[int, TurnRecord]
    ) -> AsyncIterator[Coroutine[Any, Any, TurnRecord]]:
        return ConversationDriver(item.data, spec_in(ask.specification), ask).records(done)

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        return f"{error}{score_instead(folder, error.asked)}"

    def listed(self, manifest: Mapping[str, Any]) -> Iterable[Item]:
        specification = manifest["specification"]
        turns = zip(specification["conversations"], specification["turns_each"], strict=True)
        return [Item(conversation, None, number, is_numbered=True) for conversation, number in turns]

    def check(self, record: TurnRecord, item: Item) -> Iterator[str]:
        if item.data is not None and record.question != item.data.turns[record.turn - 1].question:
            yield f"turn {record.id} has another question than the data set"
        if record.stance is not None and (untrue := untrue_fields(record)):
            yield f"{', '.join(untrue)}: not what the text and the rationale in it give"

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "conversation" in fields or "retrieved" in fields

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
        from .score_table import score_lines

        return score_lines(lines, run)

    def remarks(self, part: Mapping[str, Any]) -> Iterable[str]:
        from .score_table import remarks_of

        return remarks_of(part)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        from .score_table import cells

        return cells(entry) if entry else ("-",) * len(self.columns)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        from .score_table import score_text

        return score_text(source, scores[self.name], self.columns)

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        from .report.manner import manner_of_source

        return manner_of_source(source)

    def run_figures(self, run: ScoredRun) -> RunFigures:
        from ..evaluation.running.scored_figures import scored_figures

        def of_conversations(part: Mapping[str, Any], pair: Pair) -> dict[str, float | None]:
            every = part["conversations"].get(pair.model, {}).get(pair.treatment, {})
            return {conversation: figures["score"] for conversation, figures in every.items()}

        return scored_figures(self, run, of_conversations, of="conversations", within=(0, 1))

    def forecast(self, run: RunBasis, expected: Expected) -> Expected:
        return forecast(run, expected)

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> ConversationRun:
        from .report.runs import read

        return read(path, manifest, given.get("read"))

    def report(self, runs: Sequence[ConversationRun], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        from .report.part import page_contents

        return page_contents(self, runs, given, flags)

    def _words_of(self, kept: Mapping[str, Any]) -> list[str]:
        return [*super()._words_of(kept), *words_kept(Readings, kept)]

    def item_reader(self, manifest: Mapping[str, Any] | None) -> ConversationReader:
        return ConversationReader(None if manifest is None else readings_of_run(manifest))

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        data = load(dataset or SAMPLE)
        questions = [question for each in data.conversations for question in each.questions]
        return LoadPrompts(questions, f"{len(questions):,} questions of Chameleon's conversations ({data.name})")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        return Labeller(self.Record, label_of, exchange_of)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        from .judging import TurnJudging

        return TurnJudging(manifest, lambda: items_of_run(self, manifest))


def _spec_of(run: RunBasis) -> ConversationSpec:
    options: Options = run.options
    settings, judge, effort = run.settings, options.judge, options.judge_reasoning_effort
    tokens = {
        model: prompt_tokens(options.window or settings.facts_of(model).window or WINDOW, options.max_tokens)
        for model in dict.fromkeys((*options.model, judge))
    }
    if options.window is None:
        begun = begun_with(run.out, "chameleon", "window", "prompt_tokens")
        tokens |= {model: most for model, most in begun.items() if model in tokens}
    temperature = 0.0 if takes_temperature(judge, effort, settings) else None
    return ConversationSpec(
        pairs=run.pairs,
        judge=judge,
        search=options.search,
        tokens=tokens,
        keeps_pages=options.old_pages == "keep",
        queries_by=_queries_by(run),
        # A run that has begun goes on as it began, whatever the table of models says by now.
        judge_temperature=(begun_manifest(run.out).get("specification") or {}).get("judge_temperature", temperature),
        judge_effort=effort,
        readings=readings_of(kept_of(run.readings)),
        **{name: getattr(options, name) for name in PromptOptions.__struct_fields__},
    )


def _queries_by(run: RunBasis) -> Pair | None:
    """Returns the pair whose queries all pairs share, the model at the first temperature that it accepts; None: each
    pair writes its own."""
    options: Options = run.options
    if options.retrieval == "own":
        return None
    if options.queries_by is None:
        return run.pairs[0]
    first = next((pair for pair in run.pairs if pair.model == options.queries_by), None)
    if first is not None:
        return first
    return pairs_of((options.queries_by,), options.temperature[:1] or (0.0,), (), run.settings, run.out)[0][0]


BENCHMARK = Chameleon()
