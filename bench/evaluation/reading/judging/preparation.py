"""Judging as a benchmark, whose models are the judges and whose items are a run's kept answers; its preparation from
the run's folder and the names of the judges, and its forecast.

Owns what `judgements.json` keeps, and the checks before anything is sent. Adding judges, or answers, goes on in the
same files; another server behind a judge's name does not.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from .....configuration.configuration import Configuration, settings_for
from .....configuration.errors import UsageError
from .....configuration.options import SendingOptions
from .....engine.call import Call
from .....engine.pairs import Pair
from .....engine.runs.run_folder import RECORDS, read_manifest
from .....wiring import Settings, access_to
from .....wiring.lane_names import unused_lanes
from ...door.ask import Ask, CallFailed
from ...door.benchmark import ItemBenchmark
from ...door.expected import Expected
from ...door.item import Item
from ...door.item_set import ItemSet
from ...door.judgement import BUDGET, FILES, JUDGEMENTS, Judgement, JudgementLine, judgement_id, read_judgements
from ...door.judges import Judges, judge_note
from ...door.judging import AnswerJudge, Judging
from ...door.kept_answer import Key, key_of
from ...door.prepared_run import PreparedRun
from ...door.served_rows import ScoredRun
from ...planning.forecast import expected_of
from ...planning.item_plan import calls_of, checked
from ...planning.preparation import check_cost_is_bounded, check_models_take, kept
from .kept_answers import KeptAnswer, KeptAnswers
from .panel import JudgeReplies


def prepare(
    folder: Path,
    judging: Judging,
    models: Iterable[str],
    sending: SendingOptions,
    configuration: Configuration,
    *,
    effort: str | None = None,
    needs_keys: bool = True,
) -> PreparedRun:
    """Checks a judging of the answers in a run's folder completely, and returns it ready to begin. `models` are the
    judges, `effort` is their reasoning effort; None: the run's own, and none for other judges. `needs_keys`: whether
    calls will be sent. Writes nothing."""
    manifest = read_manifest(folder)
    benchmark = manifest["specification"]["benchmark"]
    judges = tuple(dict.fromkeys(models))
    judging.effort = effort
    settings = settings_for(judges, sending, configuration, needs_keys=needs_keys)
    answers = KeptAnswers(folder / RECORDS, judging)
    if not len(answers):
        raise UsageError(f"{folder}: expected answers that a judge reads, got none: nothing to judge")
    judged = JudgedAnswers(benchmark, judging, answers, judges, settings)
    items = judged.items()
    first = next(iter(items))
    calls = [judged.call(first, None, Pair(judge, None)) for judge in judges]
    check_cost_is_bounded({call.model: call.max_tokens for call in calls}, settings, has_option=False)
    check_models_take(calls, settings)
    words = [f"--judge={judge}" for judge in judges]
    words += [] if effort is None else [f"--judge-reasoning-effort={effort}"]
    prepared = PreparedRun(
        benchmark=judged,
        out=folder,
        settings=settings,
        items=items,
        limits={Pair(call.model, None): call.max_tokens for call in calls},
        specification={
            "benchmark": benchmark,
            "run": manifest["specification_hash"],
            "judging": dict(judging.rules),
        },
        kept={"judges": _servers(folder, judging, judges, settings), "sending": kept(sending)},
        dataset=items.dataset,
        notes=(
            *_notes(folder, judges, judging.own, manifest),
            *(note for judge in judges for note in judge_note(judge, judging.effort_of(judge), settings)),
            # The configuration is the run's, whose models have lanes in it.
            *unused_lanes([settings], manifest["specification"].get("endpoints", ())),
        ),
        files=FILES,
        budget_name=BUDGET,
        command=shlex.join(["millstream", "judge", str(folder), *words]),
    )
    return checked(prepared)


def _servers(folder: Path, judging: Judging, judges: Iterable[str], settings: Settings) -> dict[str, Any]:
    """Returns the server and effort of every judge so far. Raises UsageError if one has others than before."""
    before: Mapping[str, Any] = {}
    if (folder / FILES.manifest).exists():
        before = read_manifest(folder, FILES.manifest).get("options", {}).get("judges", {})
    servers = {}
    for judge in judges:
        effort, server = judging.effort_of(judge), access_to(judge, settings).target.specified
        servers[judge] = server if effort is None else f"{server}, effort {effort}"
    for judge, server in servers.items():
        if before.get(judge, server) != server:
            raise UsageError(
                f"{folder}: {judge} judged at {before[judge]} before, and would judge at {server} now: give that "
                f"--base-url and --judge-reasoning-effort, or move {FILES.manifest} and {JUDGEMENTS} away"
            )
    return {**before, **servers}


def _notes(folder: Path, judges: Sequence[str], own: str, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    if own in judges:
        notes.append(f"{own} is the run's own judge, asked again")
    if manifest.get("ended") is None:
        notes.append(f"{folder}: the run has not ended: the same command judges what it answers later")
    return tuple(notes)


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what the missing judgements are expected to take."""
    done = defaultdict[str, set[str]](set)
    for line in read_judgements(prepared.out, Judgement):
        if (name := judgement_id(line)) in prepared.items.steps:
            done[line.judge].add(name)
    expected = expected_of(
        prepared,
        lambda pair: (call for _, call in calls_of(prepared, pair, done[pair.model].__contains__)),
        looks_into_cache=looks_into_cache,
    )
    answers, there = len(prepared.items), sum(len(done[pair.model]) for pair in prepared.pairs)
    expected.what = f"{answers:,} kept answers, {there:,} of {prepared.total:,} judgements are there"
    expected.remarks.append("a reply that can't be read is asked for once more: such calls are not counted")
    expected.more["items"] = answers
    return expected


class JudgedAnswers(ItemBenchmark[Judgement]):
    """Judges that read a run's kept answers, by the rules of the run's benchmark."""

    name = "judging"
    unit = "judgement"
    columns = ()
    Record = Judgement
    Line = JudgementLine

    def __init__(
        self, title: str, judging: Judging, answers: KeptAnswers, judges: tuple[str, ...], settings: Settings
    ) -> None:
        self.title = title
        self._judging = judging
        self._answers = answers
        self._judges = judges
        self._sent = Judges(settings)
        self._judge = cache(lambda model: judging.judge(model, settings))

    @property
    def is_asked_once(self) -> bool:
        return True

    def items(self, options: Any = None) -> ItemSet:
        described = {"path": str(self._answers.path), "answers": len(self._answers)}
        return ItemSet(
            lambda: (Item(f"{answer.key} {answer.text_sha256}", answer) for answer in self._answers),
            digest="kept",
            dataset=described,
            title=self.title,
        )

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        """Returns a judge's call about an answer, without requests for a repair."""
        return self._sent.as_sent(self._judge(pair.model).call(*self._records_of(item.data)))

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Judgement]) -> AsyncIterator[Judgement]:
        """Yields the judgement of an answer, or its failure."""
        answer: KeptAnswer = item.data
        judge: AnswerJudge = self._judge(ask.pair.model)
        try:
            made = await judge.judged(*self._records_of(answer), ask)
        except CallFailed as error:
            made = Judgement(status=error.failure.kind, error=error.failure.detail)
        place = answer.key.pair._asdict()
        yield structs.replace(made, id=answer.key.id, **place, text_sha256=answer.text_sha256, judge=ask.pair.model)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
        """Returns the judges of whose replies too few could be read. Their verdicts are compared by a panel."""
        judging, judged = self._judging, defaultdict[Key, list[Judgement]](list)
        for line in read_judgements(run.folder, judging.Line):
            if line.judge in self._judges and self._answers.are_of(line):
                judged[line.answer].append(line)
        answered = Counter(line.judge for lines_of in judged.values() for line in lines_of)
        unread = Counter(
            line.judge
            for record in self._answers.records()
            for line in judged.get(key_of(record), ())
            if not judging.verdict(judging.applied(record, line)).is_read(judging.labels)
        )
        replies = (JudgeReplies(judge, answered[judge], unread[judge]) for judge in self._judges)
        return {"models": {}, "unmeasured": [each.unread_text for each in replies if each.is_unmeasured]}

    def _records_of(self, answer: KeptAnswer) -> tuple[list[Any], int]:
        """Returns the records of an answer's conversation, and its own place among them."""
        records = self._answers.records_of(answer)
        return records, next(at for at, record in enumerate(records) if key_of(record) == answer.key)
