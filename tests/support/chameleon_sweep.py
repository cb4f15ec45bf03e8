"""Chameleon's conversations of a data set in memory: sent, counted and proven as the program does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from millstream.bench.chameleon import run_spec
from millstream.bench.chameleon.benchmark import Chameleon
from millstream.bench.chameleon.conversation import items_of
from millstream.bench.chameleon.dataset import ConversationSet, DatasetError
from millstream.bench.chameleon.run_spec import ConversationSpec
from millstream.bench.chameleon.run_summary import TurnTotals
from millstream.bench.chameleon.turn_line import TurnLine
from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.judges import Judges
from millstream.bench.evaluation.door.outside import Outside
from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.watch import UNSEEN
from millstream.bench.evaluation.reading.proving import prove_run
from millstream.bench.evaluation.running import journals
from millstream.bench.evaluation.running import recount as lines
from millstream.bench.evaluation.running.sending import send_steps_of
from millstream.bench.evaluation.running.steps import AT_ONCE
from millstream.engine.fault import Stop
from millstream.engine.pairs import FinishedItems, Pair
from millstream.engine.runs.proof import Proof
from millstream.engine.runs.run_folder import RunFolder
from millstream.wiring import Settings


class HeldChameleon(Chameleon):
    """Chameleon with a data set in memory; None: it can't be read."""

    def __init__(self, dataset: ConversationSet | None) -> None:
        self.dataset = dataset

    def items(self, options: ConversationSpec) -> ItemSet:
        if self.dataset is None:
            raise DatasetError("the data set is not there")
        every = items_of(self.dataset, options.turns, options.order, options.seed)
        return ItemSet(items=list(every), digest=self.dataset.digest)


def specification(dataset: ConversationSet, asked: ConversationSpec, endpoints: Mapping[str, str]) -> dict[str, Any]:
    items = HeldChameleon(dataset).items(asked)
    return run_spec.specification(items.digest, items.steps, asked, endpoints)


def read_done(folder: RunFolder) -> FinishedItems:
    return journals.read_done(folder, TurnLine)


async def run_sweep(
    outside: Outside,
    folder: RunFolder,
    dataset: ConversationSet,
    asked: ConversationSpec,
    done: FinishedItems,
    at_once: int = AT_ONCE,
) -> list[Stop]:
    benchmark = HeldChameleon(dataset)
    run = PreparedRun(
        benchmark=benchmark,
        out=Path(),
        settings=Settings(),
        items=benchmark.items(asked),
        limits=dict.fromkeys(asked.pairs),
        options=asked,
        specification=specification(dataset, asked, {}),
    )
    return await send_steps_of(run, outside, folder, done, UNSEEN, at_once, Judges())


def recount(
    records: Iterable[bytes],
    failures: Iterable[bytes] = (),
    asked: Mapping[Pair, Mapping[str, int]] | None = None,
) -> TurnTotals:
    return lines.recount(TurnTotals(), {"records.jsonl": records, "failures.jsonl": failures}, asked, TurnLine)


def prove(folder: Path, manifest: dict[str, Any], dataset: ConversationSet | None) -> Proof:
    return prove_run(HeldChameleon(dataset), folder, manifest)
