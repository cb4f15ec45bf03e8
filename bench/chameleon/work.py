"""What a Chameleon run is made of: its conversations, the documents that it searches, and its specification.

Owns the checks of its options and their messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from ... import fixtures
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.call import Call
from ...engine.fault import LocalFault
from ...engine.runs.pairs import Pair
from ...fixtures.web.corpus import VERSION as CORPUS_VERSION
from ...fixtures.web.corpus import ensure_corpus
from ...providers.models import WINDOW, prompt_tokens
from ...providers.retrieval import CORPUS_LANE
from ...providers.search.access import is_search
from ...wiring import Settings
from ..evaluation.door.benchmark import RunBasis
from ..evaluation.door.item_set import ItemSet
from ..evaluation.door.judges import takes_temperature
from ..evaluation.planning.preparation import begun_manifest, begun_with, check_cost_is_bounded, pairs_of
from .conversation import items_of
from .dataset import ConversationSet, DatasetError, load, select
from .options import Options
from .readings import readings_of
from .run_spec import ConversationSpec, beyond, specification

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "chameleon"
_Run = TypeVar("_Run", bound=RunBasis)


def check_options(options: Options) -> None:
    """Raises UsageError for options that contradict each other."""
    if options.retrieval == "own" and options.queries_by is not None:
        raise UsageError("--queries-by belongs to --retrieval shared: give both, or neither")
    if options.search != CORPUS_LANE and options.corpus is not None:
        raise UsageError(
            f"--corpus belongs to --search corpus, and {options.search} was asked for: leave one of them out"
        )


def others_of(options: Options) -> tuple[str | Call, ...]:
    """Returns the judge, the model that writes the queries for all if it is not under test itself, and the search."""
    judge = Call(options.judge, "?", temperature=0.0, reasoning_effort=options.judge_reasoning_effort)
    queries = () if options.queries_by in (None, *options.model) else (options.queries_by,)
    return (judge, *queries, options.search)


def conversations_of(options: Options) -> ItemSet:
    """Returns the conversations of a run, with notes on what was asked for and is not there."""
    path = SAMPLE if options.dataset is None else Path(options.dataset)
    dataset = select(_load(path), options.conversations)
    notes = beyond(dataset, options.turns, options.conversations)
    if options.dataset is None:
        notes.insert(
            0,
            "no --dataset given: holding sample conversations that come with millstream, no published data; the "
            "paper's are not public: pass the --dataset that `millstream data chameleon` generates by its prompts",
        )
    elif options.search == CORPUS_LANE and options.corpus is None:
        notes.append("no --corpus given: searching the articles that come with millstream, on its own sample topics")
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


def with_corpus(options: Options, settings: Settings) -> Settings:
    """Returns settings with the documents that the run searches, if it searches some on this machine."""
    if options.search != CORPUS_LANE:
        return settings
    if options.corpus is not None:
        return structs.replace(settings, corpus=Path(options.corpus))
    folder = settings.cache_folder() / f"sample-corpus-{CORPUS_VERSION}"
    try:
        return structs.replace(settings, corpus=ensure_corpus(folder))
    except OSError as error:
        raise LocalFault(f"{folder} can't be written ({error.strerror}): give --corpus, or another --cache") from error


def specified(run: RunBasis) -> dict[str, Any]:
    """Returns the specification of a run."""
    return specification(run.items.digest, run.items.steps, _spec_of(run), run.endpoints)


def with_window_notes(run: _Run) -> _Run:
    """Returns a run with notes on windows that are not known. Raises UsageError if its cost has no bound."""
    settings, options = run.settings, run.options
    # Queries and judgements set no max_tokens.
    models = dict.fromkeys(lane for lane in run.endpoints if not is_search(lane))
    check_cost_is_bounded(models, settings, has_option=False)
    readers = dict.fromkeys((*options.model, options.judge))
    if options.window is not None or not (unknown := [model for model in readers if settings.window(model) is None]):
        return run
    note = f"window unknown, {WINDOW:,} tokens are assumed: {', '.join(unknown)} (--window N says it)"
    return structs.replace(run, notes=(*run.notes, note))


def _load(path: Path) -> ConversationSet:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, got: {error.strerror}") from error


def _spec_of(run: RunBasis) -> ConversationSpec:
    options: Options = run.options
    settings, judge, effort = run.settings, options.judge, options.judge_reasoning_effort
    tokens = {
        model: prompt_tokens(options.window or settings.window(model) or WINDOW, options.max_tokens)
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
        turns=options.turns,
        pages=options.pages,
        page_tokens=options.page_tokens,
        keeps_pages=options.old_pages == "keep",
        order=options.order,
        seed=options.seed,
        queries_by=_queries_by(run),
        judge_prompt=options.judge_prompt,
        # A run that has begun goes on as it began, whatever the table of models says by now.
        judge_temperature=(begun_manifest(run.out).get("specification") or {}).get("judge_temperature", temperature),
        judge_effort=effort,
        max_tokens=options.max_tokens,
        readings=readings_of(kept_of(run.readings)),
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
