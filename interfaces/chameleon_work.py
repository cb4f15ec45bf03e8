"""Chameleon as the command line carries it out: from its options to a run that can be sent, and what its journals hold.

Owns the checks of its options and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from .. import fixtures
from ..bench.chameleon.asked import Asked, asked_of, beyond, pairs_of, specification
from ..bench.chameleon.dataset import Dataset, DatasetError, load, select
from ..bench.chameleon.histories import UNRECORDED, read_done
from ..bench.chameleon.order import Order
from ..bench.chameleon.prompts import JudgePrompt
from ..bench.chameleon.recount import recount
from ..bench.chameleon.sweep import at_once_of, run_sweep
from ..bench.chameleon.windows import bundled_windows, prompt_tokens
from ..engine.admission import Stop
from ..engine.call import Call
from ..engine.endpoint import EncodeError
from ..engine.estimate import TokenEstimate
from ..engine.fault import LocalFault
from ..engine.money import worst_cost
from ..engine.pairs import Done, Pair
from ..engine.run_folder import RunFolder
from ..fixtures.web.corpus import VERSION as CORPUS_VERSION
from ..fixtures.web.corpus import ensure_corpus
from ..metrics.chameleon.scores import scores as scores_of
from ..metrics.chameleon.traces import Traces
from ..providers.retrieval import CORPUS_LANE
from ..wiring import Engine, Settings, access_to, keyless_endpoint_to
from .benchmark_options import ChameleonOptions
from .chameleon_readings import readings_of
from .chameleon_scores import COLUMNS, cells, entry_of, remarks_of
from .chameleon_summary import as_json, details_of, lines
from .configuration import Configuration, settings_for
from .options import Sending
from .preparation import Prepared, check_cost_is_bounded, kept
from .refusal import UsageError
from .work import Counted

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "chameleon"


_CHARS_A_TOKEN = 4


class ChameleonWork(Struct, frozen=True):
    """Conversations, and who holds them."""

    dataset: Dataset
    asked: Asked
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

    def pairs(self) -> list[Pair]:
        return list(self.asked.pairs)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Of a prompt that fills what a model may be sent, at four characters a token."""
        prices = settings.price_table()
        worst = {}
        for lane in self.lanes:
            chars = _CHARS_A_TOKEN * self.asked.tokens.get(lane, 0)
            call = Call(lane, "x" * chars, max_tokens=None if lane == self.asked.judge else self.asked.max_tokens)
            price = prices.get(lane)
            if price is not None and (most := worst_cost(call, price, TokenEstimate())) is not None:
                worst[lane] = most
        return worst

    def read_done(self, folder: RunFolder) -> Done:
        return read_done(folder)

    async def send(self, engine: Engine, folder: RunFolder, done: Done, item_ended: Callable[[], None]) -> list[Stop]:
        if self.settings.mode not in ("replay", "strict"):
            # Before anything is paid for. What is only repeated has its texts.
            await engine.check_pages()
        under_test = dict.fromkeys(pair.model for pair in self.asked.pairs)
        at_once = at_once_of([self.settings.whole_lane_of(model) for model in under_test])
        return await run_sweep(engine, folder, self.dataset, self.asked, done, item_ended, at_once)

    def count(self, folder: RunFolder) -> Counted:
        asked = asked_of(self.specification)
        counted = recount(folder.records.read(), folder.failures.read(), asked, str(folder.records.path))
        traces = Traces()
        for line in folder.records.read():
            traces.add(line)
        prices = self.settings.price_table()
        unpriced = [lane for lane in self.lanes if lane != self.asked.search and prices.get(lane) is None]
        details = details_of(counted, traces, unpriced, float(folder.manifest.get(UNRECORDED, 0.0)))
        for pair, ended in counted.pairs.items():
            # Searches that cost nothing are no price of a model that has none.
            if not ended.cost and {pair.model, self.asked.judge} & set(unpriced):
                ended.cost = None
        scores = scores_of(traces, self.asked.readings, asked)
        remarks = (*lines(details, folder.folder), *remarks_of(scores))
        return Counted(counted.pairs, scores, remarks, as_json(details), tuple(scores["chameleon"]["unmeasured"]))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return cells(entry_of(scores, pair), scores["chameleon"]["readings"])


def prepare(
    out: Path, run: ChameleonOptions, sending: Sending, configuration: Configuration, *, needs_keys: bool = True
) -> Prepared:
    """Check one run to the end. Nothing is written but the sample corpus. Without `needs_keys` it can be planned, not
    sent."""
    if run.retrieval == "own" and run.queries_by is not None:
        raise UsageError("--queries-by belongs to --retrieval shared: give both, or neither")
    if run.search != CORPUS_LANE and run.corpus is not None:
        raise UsageError(f"--corpus belongs to --search corpus, and {run.search} was asked for: leave one of them out")
    models = tuple(dict.fromkeys([*run.model, run.judge, *([run.queries_by] if run.queries_by else [])]))
    settings = settings_for(models, sending, configuration, (run.search,))
    if not needs_keys:
        settings = structs.replace(settings, needs_keys=False)
    # Queries and judgements set no max_tokens.
    check_cost_is_bounded(dict.fromkeys(models), settings, has_option=False)
    path = SAMPLE if run.dataset is None else Path(run.dataset)
    dataset = select(_load(path), run.conversations)
    notes = []
    if run.dataset is None:
        notes.append("no --dataset given: holding sample conversations that come with millstream, no published data")
    notes += beyond(dataset, run.turns, run.conversations)
    endpoints = {model: access_to(model, settings).target.specified for model in (*models, run.search)}
    if run.search == CORPUS_LANE:
        corpus = _corpus(run, settings, notes)
        settings = structs.replace(settings, corpus=corpus)
        endpoints[run.search] = f"corpus:{_digest_of(corpus)}"
    asked = _asked(run, settings, notes)
    specified = specification(dataset, asked, endpoints)
    return Prepared(
        out=out,
        work=ChameleonWork(dataset, asked, specified, settings),
        settings=settings,
        specification=specified,
        options={"chameleon": _as_resumed(run, path), "sending": kept(sending)},
        dataset={
            "path": str(path),
            "name": dataset.name,
            "digest": dataset.digest,
            "conversations": len(dataset.conversations),
        },
        notes=tuple(notes),
    )


def options_of(manifest: Mapping[str, Any]) -> ChameleonOptions:
    """What a manifest keeps of `_as_resumed`. Raises KeyError or TypeError where it was not ours."""
    found = dict(manifest["options"]["chameleon"])
    for name in ("model", "temperature"):
        found[name] = tuple(found[name])
    return ChameleonOptions(**found)


def dataset_of(manifest: Mapping[str, Any]) -> Dataset | None:
    """The data set of a run, where it still is."""
    path = (manifest.get("options") or {}).get("chameleon", {}).get("dataset")
    try:
        return load(SAMPLE if path is None else Path(path))
    except (DatasetError, OSError):
        return None


def _load(path: Path) -> Dataset:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, came: {error.strerror}") from error


def _asked(run: ChameleonOptions, settings: Settings, notes: list[str]) -> Asked:
    def takes(model: str, temperature: float | None) -> bool:
        try:
            keyless_endpoint_to(access_to(model, settings)).encode(
                Call(model, "?", temperature=temperature, max_tokens=run.max_tokens)
            )
        except EncodeError:
            return False
        return True

    for model in dict.fromkeys([*run.model, run.judge]):
        if not takes(model, None):
            raise UsageError(f"model {model} takes no --max-tokens ({run.max_tokens}): leave it out")
    pairs, without = pairs_of(run.model, run.temperature, takes)
    if without:
        notes.append(f"asked at their own temperature alone, since they take none: {', '.join(without)}")
    judge_temperature = 0.0 if takes(run.judge, 0.0) else None
    if judge_temperature is None:
        notes.append(f"the judge {run.judge} takes no temperature: it judges at its own")
    models = dict.fromkeys([*run.model, run.judge])
    windows = bundled_windows()
    if run.window is None and (unknown := [model for model in models if windows.known(model) is None]):
        notes.append(
            f"window unknown, {windows.default:,} tokens are assumed: {', '.join(unknown)} (--window N says it)"
        )
    tokens = {model: prompt_tokens(run.window or windows.of(model), run.max_tokens) for model in models}
    return Asked(
        pairs=pairs,
        judge=run.judge,
        search=run.search,
        tokens=tokens,
        turns=run.turns,
        pages=run.pages,
        page_tokens=run.page_tokens,
        keeps_pages=run.old_pages == "keep",
        order=cast(Order, run.order),
        seed=run.seed,
        queries_by=_queries_by(run, pairs, takes),
        judge_prompt=cast(JudgePrompt, run.judge_prompt),
        judge_temperature=judge_temperature,
        max_tokens=run.max_tokens,
        readings=readings_of(run),
    )


def _queries_by(
    run: ChameleonOptions, pairs: tuple[Pair, ...], takes: Callable[[str, float | None], bool]
) -> Pair | None:
    """Whose queries all pairs share: a model's at the first temperature that it takes."""
    if run.retrieval == "own":
        return None
    if run.queries_by is None:
        return pairs[0]
    first = next((pair for pair in pairs if pair.model == run.queries_by), None)
    if first is not None:
        return first
    temperature = next(iter(run.temperature), 0.0)
    return Pair(run.queries_by, temperature if takes(run.queries_by, temperature) else None)


def _corpus(run: ChameleonOptions, settings: Settings, notes: list[str]) -> Path:
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
    from ..providers.search.documents import CorpusError, digest_of, listed

    try:
        return digest_of(listed(corpus))
    except CorpusError as error:
        raise UsageError(f"--corpus: {error}") from error


def _as_resumed(run: ChameleonOptions, path: Path) -> dict[str, Any]:
    """The options with which the same conversations are held again."""
    found = run.as_dict()
    found["dataset"] = None if run.dataset is None else str(path)
    return found
