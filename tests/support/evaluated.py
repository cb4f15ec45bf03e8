"""Simple benchmarks over the engine's own scheduler and a scripted provider, in virtual time.

What is answered stays in the cache beside the folder, as it does between the lives of a run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from scripted import Bench, Script, ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.bench.evaluation.door.ask import Ask
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.item_line import ItemLine
from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.judges import Judges
from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.record import Record as BaseRecord
from millstream.bench.evaluation.door.treatments import specified_pairs
from millstream.bench.evaluation.door.watch import UNSEEN
from millstream.bench.evaluation.running.call_items import CallSweep
from millstream.bench.evaluation.running.item_run import Made
from millstream.bench.evaluation.running.journals import read_done
from millstream.bench.evaluation.running.sending import send_steps_of
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Cleared
from millstream.engine.fault import Stop, StopReason
from millstream.engine.lane import Lane
from millstream.engine.pairs import Pair
from millstream.engine.prices import Price
from millstream.engine.run import run_calls
from millstream.engine.runs.run_folder import RunFolder
from millstream.engine.sink import Sink
from millstream.providers.pages.page import Page
from millstream.providers.search.joined import Found
from millstream.wiring import Settings

MODEL, OTHER, JUDGE = "script/m", "script/other", "script/judge"
PAIRS = (Pair(MODEL, 0.5), Pair(OTHER, None))
SPECIFICATION = specified_pairs(PAIRS)
Line = dict[str, Any]


class Answer(BaseRecord, frozen=True, kw_only=True):
    """A record with a field of the benchmark's own."""

    score: float | None = None


class Questions:
    """Items of one call."""

    title = "Questions"
    Record = Answer
    Line = ItemLine

    def __init__(self, count: int = 20) -> None:
        self.count = count

    def items(self, options: Any) -> Iterable[Item]:
        return (Item(f"q{number}", number, group=f"g{number % 2}") for number in range(self.count))

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        return Call(pair.model, f"{pair} {item.id}", temperature=pair.temperature)

    def record(self, item: Item, outcome: Outcome, options: Any) -> BaseRecord:
        return Answer(score=float(item.data % 2))


class Talks:
    """Items of several turns, each judged while the next one is asked."""

    title = "Talks"
    Record = Answer
    Line = ItemLine

    def __init__(self, count: int = 6, turns: int = 3) -> None:
        self.count = count
        self.turns = turns
        self.done: list[tuple[str, list[int]]] = []

    def items(self, options: Any) -> Iterable[Item]:
        return (Item(f"t{number}", number, steps=self.turns) for number in range(self.count))

    async def run(self, item: Item, ask: Ask, done: Mapping[int, BaseRecord]) -> AsyncIterator[Made]:
        self.done.append((item.id, sorted(done)))
        said = [done[step].text or "" for step in sorted(done)]
        for turn in range(1, self.turns + 1):
            if turn in done:
                continue
            text = f"{ask.pair} {item.id}/{turn} after {len(said)}"
            reply = await ask(Call(ask.pair.model, text, temperature=ask.pair.temperature))
            said.append(reply.text)
            yield self._judged(ask, reply.text, turn)

    async def _judged(self, ask: Ask, text: str, turn: int) -> Answer:
        reply = await ask(Call(JUDGE, f"judge {text}"), role="judge", step=turn)
        return Answer(text=text, score=float(len(reply.text)))


class World:
    """The engine's facade over a scripted bench."""

    def __init__(self, bench: Bench) -> None:
        self.scheduler = bench.scheduler

    async def ask(self, call: Call) -> Outcome:
        return await self.scheduler.ask(call)

    async def search(self, model: str, query: str, count: int) -> Found:
        raise NotImplementedError

    async def read(self, url: str) -> Page:
        raise NotImplementedError

    def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncGenerator[Outcome, None]:
        return run_calls(self.scheduler, calls, sink)

    def halt(self, reason: StopReason, detail: str) -> None:
        self.scheduler.halt(reason, detail)


class Life(Struct):
    """How one part of a run ended."""

    stops: list[Stop]
    spent: float
    is_over: bool = True


class Lives:
    """One run in `folder`, in as many parts as wanted; `sent` has how often each prompt was answered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: Counter[str] = Counter()
        self.spent = 0.0

    def live(
        self,
        benchmark: Any,
        *,
        script: Script | None = None,
        seconds: float | None = None,
        retry: bool = False,
        pairs: tuple[Pair, ...] = PAIRS,
        latency_s: Callable[[], float] | float = 1.0,
        at_once: int = 4,
    ) -> Life:
        provider = _Counting(self.sent, script, latency_s)

        async def main() -> Life:
            lanes = [Lane(model, concurrency=2) for model in (MODEL, OTHER, JUDGE)]
            providers = dict.fromkeys((MODEL, OTHER, JUDGE), provider)
            price = Price(1000.0, 1000.0)
            async with engine_over(providers, self.folder / "cache", *lanes, price=price) as bench:
                with RunFolder(self.folder / "run", SPECIFICATION, retry=retry) as folder:
                    folder.write_manifest()
                    try:
                        async with asyncio.timeout(seconds):
                            stops = await self._send(benchmark, World(bench), folder, pairs, at_once)
                    except TimeoutError:
                        return Life([], bench.budget.spent, is_over=False)
                    finally:
                        self.spent += bench.budget.spent
                    return Life(stops, bench.budget.spent)

        return run_virtually(main())

    async def _send(
        self, benchmark: Any, world: World, folder: RunFolder, pairs: tuple[Pair, ...], at_once: int
    ) -> list[Stop]:
        items, done = ItemSet(lambda: benchmark.items(None), title=benchmark.title), read_done(folder)
        if getattr(benchmark, "has_calls", hasattr(benchmark, "call")):
            streams = {pair: (items.left(done.of(pair).__contains__), None) for pair in pairs}
            return await CallSweep(benchmark, world, folder, None).run(streams)
        limits = dict.fromkeys(pairs)
        run = PreparedRun(benchmark=benchmark, out=self.folder, settings=Settings(), items=items, limits=limits)
        return await send_steps_of(run, world, folder, done, UNSEEN, at_once, Judges())

    def lines(self, name: str = "records") -> list[Line]:
        path = self.folder / "run" / f"{name}.jsonl"
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]

    def manifest(self) -> dict[str, Any]:
        return dict(orjson.loads((self.folder / "run" / "manifest.json").read_bytes()))


class _Counting(ScriptedProvider):
    def __init__(self, sent: Counter[str], script: Script | None, latency_s: Callable[[], float] | float) -> None:
        super().__init__(script, latency_s)
        self._sent = sent

    async def send(self, request: Any, cleared: Cleared) -> Any:
        response = await super().send(request, cleared)
        self._sent[request.body.decode()] += 1
        return response


def ids(lines: Iterable[Line]) -> list[str]:
    return [line["id"] for line in lines]


def whole(benchmark: Any, pairs: tuple[Pair, ...] = PAIRS) -> Iterator[tuple[str, float | None, str]]:
    for pair in pairs:
        for item in benchmark.items(None):
            yield from ((pair.model, pair.temperature, each) for each in item.line_ids())
