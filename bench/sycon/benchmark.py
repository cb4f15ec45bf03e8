"""SYCON-Bench as a benchmark: its conversations of five turns, each an answer and its judgement, on which later answers
don't depend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from ...engine.call import Call
from ...metrics.sycon.figures import TURNS
from ...metrics.sycon.judgement import SETTINGS, Setting, read_judgement
from ..evaluation.door.ask import Ask, CallFailed
from ..evaluation.door.benchmark import ItemBenchmark, LoadPrompts
from ..evaluation.door.item import Item
from ..evaluation.door.judging import Judging
from ..evaluation.door.label import Labeller
from ..evaluation.door.run_items import items_of_run, options_in
from .dataset import PUBLISHED, SyconItem, read_setting
from .judge import SyconJudge
from .judging import SyconJudging
from .options import DATA, JUDGE_TOKENS, PROMPTS, TITLE, Options, Readings, chosen
from .prompts import PROMPT_VERSION, turn_messages, user_turns
from .records import Record as TurnRecord
from .records import is_own_id, item_id, wrong_in
from .review import exchange_of, label_of
from .score_table import cells, score_text
from .scoring import scores_of
from .shown_items import ConversationReader

if TYPE_CHECKING:
    from ...report.sections import PageContents
    from ...wiring import Settings


class SyconScript(NamedTuple):
    """The data, strategy and prompt version that determine an item's conversation."""

    row: SyconItem
    strategy: str
    prompts: int = PROMPT_VERSION


class Sycon(ItemBenchmark[TurnRecord]):
    name = "sycon"
    title = TITLE
    unit = "turn"
    columns = ("turn of flip", "number of flips")
    categories = ("setting", "strategy", "judge", "judgement")
    data = DATA
    prompts = PROMPTS
    Options = Options
    Readings = Readings
    Record = TurnRecord

    def items(self, options: Any) -> Iterable[Item]:
        folder = PUBLISHED if options.dataset is None else Path(options.dataset)
        for setting, strategies in chosen(options).items():
            rows = read_setting(setting, folder)[: options.limit]
            for strategy in strategies:
                for row in rows:
                    name = item_id(setting, strategy, row.number)
                    yield Item(name, SyconScript(row, strategy), steps=TURNS, group=f"{setting}/{strategy}")

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]:
        if options.judge_max_tokens is not None:
            return options, settings
        # The manifest keeps what is sent.
        thinks = settings.facts_of(options.judge).thinks_at(options.judge_reasoning_effort)
        return structs.replace(options, judge_max_tokens=0 if thinks else JUDGE_TOKENS), settings

    async def run(
        self, item: Item, ask: Ask, done: Mapping[int, TurnRecord]
    ) -> AsyncIterator[Coroutine[Any, Any, TurnRecord]]:
        """Yields the judging of each turn that is not done."""
        script: SyconScript = item.data
        pair, answers = ask.pair, list[str]()
        for turn in range(1, TURNS + 1):
            if turn in done:
                answers.append(done[turn].text or "")
                continue
            call = Call(
                pair.model,
                turn_messages(script.row, script.strategy, answers),
                temperature=pair.temperature,
                max_tokens=ask.options.max_tokens,
                reasoning_effort=pair.effort,
            )
            answers.append((await ask(call)).text)
            yield _judged(script, ask, turn, answers[-1])

    def others(self, options: Any) -> Sequence[Call]:
        return (_judge_of(options).parameters,)

    def check(self, record: TurnRecord, item: Item) -> str | None:
        script: SyconScript = item.data
        return wrong_in(record, script.row, script.strategy)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        return "held" in fields and is_own_id(str(fields.get("id")))

    def score_records(
        self, records: Iterable[TurnRecord], readings: Any, specification: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        return scores_of(records, specification)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return cells(entry)

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        return score_text(source, scores[self.name])

    def report(self, runs: Sequence[Any], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents:
        from ..evaluation.page.part import general_part
        from .report.part import page_contents

        return page_contents(general_part(self, runs, given, flags), runs)

    def item_reader(self, manifest: Mapping[str, Any] | None) -> ConversationReader:
        return ConversationReader()

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        folder = dataset or PUBLISHED
        prompts = [turn_messages(row, "base", ()) for setting in SETTINGS for row in read_setting(setting, folder)]
        return LoadPrompts(prompts, f"{len(prompts):,} first turns of SYCON-Bench's conversations ({folder.name})")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        rows = _rows(self.items(options_in(self, manifest))) if manifest is not None and is_shown else {}
        return Labeller(TurnRecord, lambda record: label_of(record, rows), exchange_of)

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        return SyconJudging(manifest, options_in(self, manifest), lambda: _rows(items_of_run(self, manifest)))


def _rows(items: Iterable[Item]) -> dict[tuple[Setting, int], SyconItem]:
    return {(item.data.row.setting, item.data.row.number): item.data.row for item in items}


async def _judged(script: SyconScript, ask: Ask, turn: int, text: str) -> TurnRecord:
    """Returns the record of an answer. An answer without text is not sent to the judge."""
    row, judge = script.row, _judge_of(ask.options)
    judgement, held = None, None
    if text.strip():
        try:
            judgement = await judge.judge(ask, row, text, turn)
            held = read_judgement(row.setting, judgement).held
        except CallFailed:
            if ask.options.unjudged != "not-held":
                raise
    if held is None and ask.options.unjudged == "not-held":
        held = False
    return TurnRecord(
        setting=row.setting,
        strategy=script.strategy,
        row=row.number,
        turn=turn,
        question=user_turns(row, script.strategy)[turn - 1],
        judgement=judgement,
        held=held,
        judge=judge.model,
        judge_temperature=judge.temperature(ask),
    )


def _judge_of(options: Options) -> SyconJudge:
    return SyconJudge(options.judge, options.judge_max_tokens or None, options.judge_reasoning_effort)


BENCHMARK = Sycon()
