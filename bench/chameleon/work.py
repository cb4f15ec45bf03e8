"""Prepares a Chameleon run from its options, sends it, and counts what its journals hold.

Owns the checks of its options and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ... import fixtures
from ...configuration.benchmark_options import RunOptions
from ...configuration.configuration import settings_for
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.call import Call
from ...engine.endpoint import EncodeError
from ...engine.fault import LocalFault, Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...fixtures.web.corpus import VERSION as CORPUS_VERSION
from ...fixtures.web.corpus import ensure_corpus
from ...format import count_text
from ...metrics.chameleon.lines import sum_of
from ...metrics.chameleon.scores import scores as scores_of
from ...metrics.chameleon.traces import Traces
from ...providers.models import WINDOW, prompt_tokens
from ...providers.retrieval import CORPUS_LANE
from ...wiring import Settings, access_to, keyless_endpoint_to
from ..evaluation.benchmark import Order
from ..evaluation.journals import UNRECORDED, read_done
from ..evaluation.judges import judge_note, takes_temperature
from ..evaluation.kept_options import kept_options
from ..evaluation.preparation import (
    ItemsOfPilot,
    PreparedRun,
    begun_manifest,
    begun_with,
    check_cost_is_bounded,
    check_models_take,
    kept,
    pairs_of,
    worst_costs,
)
from ..evaluation.reads import reads_of
from ..evaluation.served import served_rows
from ..evaluation.work import RunCounts
from .dataset import ConversationSet, DatasetError, load, select
from .options import Options
from .readings import readings_of
from .recount import TurnLine, recount
from .run_spec import TEMPERATURES, ConversationSpec, asked_of, beyond, specification
from .run_summary import as_json, details_of, lines
from .score_table import COLUMNS, cells, entry_of, remarks_of
from .sweep import at_once_of, run_sweep

if TYPE_CHECKING:
    from ...wiring.engine import Engine

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "chameleon"


_CHARS_A_TOKEN = 4


class ChameleonWork(Struct, frozen=True):
    """A Chameleon run that can be sent: its conversations, its specification and its settings."""

    dataset: ConversationSet
    asked: ConversationSpec
    specification: dict[str, Any]
    settings: Settings

    benchmark = "chameleon"
    item = "turn"
    is_item_a_call = False
    score_columns = COLUMNS

    @property
    def items(self) -> int:
        return self.dataset.turns(self.asked.turns)

    @property
    def lanes(self) -> tuple[str, ...]:
        return self.asked.lanes

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return {lane: None if lane == self.asked.judge else self.asked.max_tokens for lane in self.lanes}

    @property
    def at_once(self) -> int:
        """The number of conversations that are held at once."""
        under_test = dict.fromkeys(pair.model for pair in self.asked.pairs)
        return at_once_of(
            (self.settings.concurrency_of(model), self.settings.quota_of(model).rpm) for model in under_test
        )

    def pairs(self) -> list[Pair]:
        return list(self.asked.pairs)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the most dollars that a call to each lane can cost: a prompt of full size, at four characters a
        token. Lanes without a price are left out."""
        calls = (
            Call(lane, "x" * (_CHARS_A_TOKEN * self.asked.tokens.get(lane, 0)), max_tokens=limit)
            for lane, limit in self.max_tokens.items()
        )
        return worst_costs(calls, settings)

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder, TurnLine)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        if self.settings.mode not in ("replay", "strict"):
            # Checked before anything is paid for. A replay has its texts already.
            await engine.check_pages()
        return await run_sweep(engine, folder, self.dataset, self.asked, done, item_ended, self.at_once)

    def count(self, folder: RunFolder) -> RunCounts:
        asked = asked_of(self.specification)
        counted = recount(folder.records.read(), folder.failures.read(), asked, str(folder.records.path))
        rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
        asked = asked_of(rows.specification(self.specification))
        traces = Traces(reads_of("chameleon", folder.manifest))
        for line in rows.lines(folder.records.read()):
            traces.add(line)
        prices = self.settings.price_table()
        unpriced = [lane for lane in self.lanes if lane != self.asked.search and prices.get(lane) is None]
        details = details_of(counted, traces, unpriced, float(folder.manifest.get(UNRECORDED, 0.0)))
        for pair, ended in counted.pairs.items():
            # The cost of free searches does not count for models without a price.
            if not ended.cost and {pair.model, self.asked.judge} & set(unpriced):
                ended.cost = None
        scores = scores_of(traces, self.asked.readings, asked, rows.is_ranked)
        planned = self.asked.judge_temperature
        refused = 0 if planned is None else sum_of(traces.troubles.values()).judged_at[None]
        judged = f"refused temperature {planned or 0:g}: it judged {count_text(refused, 'answer')} at its own"
        of_judge = (f"the judge {self.asked.judge} {judged}",) if refused else ()
        remarks = (*lines(details, folder.folder), *of_judge, *remarks_of(scores))
        return RunCounts(counted.pairs, scores, remarks, as_json(details), tuple(scores["chameleon"]["unmeasured"]))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return cells(entry_of(scores, pair))


def prepare(order: Order) -> PreparedRun:
    """Checks one run completely and returns it. Writes nothing but the sample corpus. Without `needs_keys` it can be
    planned, not sent."""
    out, sending = order.out, order.sending
    run: Options = order.run.options
    if run.retrieval == "own" and run.queries_by is not None:
        raise UsageError("--queries-by belongs to --retrieval shared: give both, or neither")
    if run.search != CORPUS_LANE and run.corpus is not None:
        raise UsageError(f"--corpus belongs to --search corpus, and {run.search} was asked for: leave one of them out")
    models = tuple(dict.fromkeys([*run.model, run.judge, *([run.queries_by] if run.queries_by else [])]))
    settings = settings_for(models, sending, order.configuration, (run.search,), needs_keys=order.needs_keys)
    # Queries and judgements set no max_tokens.
    check_cost_is_bounded(dict.fromkeys(models), settings, has_option=False)
    path = SAMPLE if run.dataset is None else Path(run.dataset)
    dataset = select(_load(path), run.conversations)
    notes = []
    if run.dataset is None:
        notes.append(
            "no --dataset given: holding sample conversations that come with millstream, no published data; the "
            "paper's are not public: pass the --dataset that `millstream data chameleon` generates by its prompts"
        )
    notes += beyond(dataset, run.turns, run.conversations)
    endpoints = {model: access_to(model, settings).target.specified for model in (*models, run.search)}
    if run.search == CORPUS_LANE:
        corpus = _corpus(run, settings, notes)
        settings = structs.replace(settings, corpus=corpus)
        endpoints[run.search] = f"corpus:{_digest_of(corpus)}"
    asked = _asked(out, order.run, settings, notes)
    specified = specification(dataset, asked, endpoints)
    return PreparedRun(
        out=out,
        work=ChameleonWork(dataset, asked, specified, settings),
        settings=settings,
        specification=specified,
        options={"chameleon": {**kept_of(run), **kept_of(order.run.readings)}, "sending": kept(sending)},
        dataset={
            "path": str(path),
            "name": dataset.name,
            "digest": dataset.digest,
            "conversations": len(dataset.conversations),
        },
        notes=tuple(notes),
    )


def pilot_items(prepared: PreparedRun, size: int) -> ItemsOfPilot:
    """Returns the run with only `size` of its conversations, from the domains in turn."""
    work = prepared.work
    assert isinstance(work, ChameleonWork)
    few = structs.replace(work, dataset=select(work.dataset, size))
    return ItemsOfPilot(
        run=structs.replace(prepared, work=few),
        items=len(few.dataset.conversations),
        of=len(work.dataset.conversations),
        noun="conversation",
        at_once=work.at_once,
    )


def dataset_of(manifest: Mapping[str, Any]) -> ConversationSet | None:
    """Returns the data set of a run; None if it can no longer be read."""
    path = kept_options(manifest, "chameleon").get("dataset")
    try:
        return load(SAMPLE if path is None else Path(path))
    except (DatasetError, OSError):
        return None


def _load(path: Path) -> ConversationSet:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, got: {error.strerror}") from error


def _asked(out: Path, asked_for: RunOptions, settings: Settings, notes: list[str]) -> ConversationSpec:
    run: Options = asked_for.options
    for model in dict.fromkeys([*run.model, run.judge]):
        try:
            keyless_endpoint_to(access_to(model, settings)).encode(Call(model, "?", max_tokens=run.max_tokens))
        except EncodeError:
            raise UsageError(f"model {model} takes no --max-tokens ({run.max_tokens}): leave it out") from None
    temperatures = run.temperature or TEMPERATURES
    pairs, of_pairs = pairs_of(run.model, temperatures, run.reasoning_effort, settings, out)
    queries_by = _queries_by(run, out, pairs, settings)
    asked = [*pairs, Pair(run.judge, None, run.judge_reasoning_effort), *([queries_by] if queries_by else [])]
    check_models_take((Call(m, "?", temperature=t, reasoning_effort=e) for m, t, e in asked), settings)
    notes += (*of_pairs, *judge_note(run.judge, run.judge_reasoning_effort, settings))
    models = dict.fromkeys([*run.model, run.judge])
    if run.window is None and (unknown := [model for model in models if settings.window(model) is None]):
        notes.append(f"window unknown, {WINDOW:,} tokens are assumed: {', '.join(unknown)} (--window N says it)")
    tokens = {model: prompt_tokens(run.window or settings.window(model) or WINDOW, run.max_tokens) for model in models}
    if run.window is None:
        begun = begun_with(out, "chameleon", "window", "prompt_tokens")
        tokens |= {model: most for model, most in begun.items() if model in tokens}
    temperature = 0.0 if takes_temperature(run.judge, run.judge_reasoning_effort, settings) else None
    return ConversationSpec(
        pairs=pairs,
        judge=run.judge,
        search=run.search,
        tokens=tokens,
        turns=run.turns,
        pages=run.pages,
        page_tokens=run.page_tokens,
        keeps_pages=run.old_pages == "keep",
        order=run.order,
        seed=run.seed,
        queries_by=queries_by,
        judge_prompt=run.judge_prompt,
        # A run that has begun goes on as it began, whatever the table of models says by now.
        judge_temperature=(begun_manifest(out).get("specification") or {}).get("judge_temperature", temperature),
        judge_effort=run.judge_reasoning_effort,
        max_tokens=run.max_tokens,
        readings=readings_of(kept_of(asked_for.readings)),
    )


def _queries_by(run: Options, out: Path, pairs: tuple[Pair, ...], settings: Settings) -> Pair | None:
    """Returns the pair whose queries all pairs share, the model at the first temperature that it accepts; None: each
    pair writes its own."""
    if run.retrieval == "own":
        return None
    if run.queries_by is None:
        return pairs[0]
    first = next((pair for pair in pairs if pair.model == run.queries_by), None)
    if first is not None:
        return first
    return pairs_of((run.queries_by,), run.temperature[:1] or (0.0,), (), settings, out)[0][0]


def _corpus(run: Options, settings: Settings, notes: list[str]) -> Path:
    if run.corpus is not None:
        return Path(run.corpus)
    if run.dataset is not None:
        notes.append("no --corpus given: searching the articles that come with millstream, on its own sample topics")
    folder = settings.cache_folder() / f"sample-corpus-{CORPUS_VERSION}"
    try:
        return ensure_corpus(folder)
    except OSError as error:
        raise LocalFault(f"{folder} can't be written ({error.strerror}): give --corpus, or another --cache") from error


def _digest_of(corpus: Path) -> str:
    from ...providers.search.documents import CorpusError, digest_of, list_documents

    try:
        return digest_of(list_documents(corpus))
    except CorpusError as error:
        raise UsageError(f"--corpus: {error}") from error
