"""A MillStone run: what decides its answers, what of it is done, and the calls of all its models at once.

Owns the specification, and that a (model, temperature, id) gets one journal line and never two. Is given an open
folder and anything that runs calls; builds no engine, reads no clock, prints nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ...engine.admission import Stop, StopReason
from ...engine.call import Call, Outcome
from ...engine.fault import LocalFault, Stopped
from ...engine.pairs import Done, Pair
from ...engine.run_folder import RunFolder
from ...engine.sink import Sink
from ...metrics.gaps import Shape
from ...metrics.silence import Silence
from ...metrics.stance import Reading
from .grid import CONFIGS, Grid, calls, default_max_tokens
from .records import RecordError, row

# A model that has never answered is given up after twenty rejections alike: these must come from all over the grid, not
# from one issue whose words it does not take.
_SPREAD = 20


class Asked(Struct, frozen=True):
    """Who is asked and how. `max_tokens` None: what `unset` says of each model, which was decided when the run began;
    of a model that it does not name, what the protocol gives it by its name."""

    models: tuple[str, ...]
    temperatures: tuple[float | None, ...] = (None,)
    max_tokens: int | None = None
    reading: Reading = "paper"
    unset: Mapping[str, int | None] = {}

    def __post_init__(self) -> None:
        for name, values in (("models", self.models), ("temperatures", self.temperatures)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} ({', '.join(map(str, values))}) must be at least one, each named once")

    def pairs(self) -> list[Pair]:
        return [Pair(model, temperature) for model in self.models for temperature in self.temperatures]

    def max_tokens_of(self, model: str) -> int | None:
        if self.max_tokens is not None:
            return self.max_tokens
        return self.unset[model] if model in self.unset else default_max_tokens(model)


class Runner(Protocol):
    """What a run is sent through: the engine."""

    def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]: ...

    def halt(self, reason: StopReason, detail: str) -> None: ...


def specification(grid: Grid, asked: Asked, endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Whatever decides prompts and answers; `endpoints` names each model's address as the keys of its calls do."""
    return {
        "benchmark": "millstone",
        **grid.specification(),
        "models": list(asked.models),
        "endpoints": dict(endpoints),
        "temperatures": list(asked.temperatures),
        "max_tokens": {model: asked.max_tokens_of(model) for model in asked.models},
        "stance": asked.reading,
    }


def asked_of(specification: Mapping[str, Any]) -> dict[tuple[str, float | None], Shape]:
    """What each pair of a run was to answer."""
    shape = Shape(
        issues=tuple(specification["issues"]),
        templates=tuple(range(1, specification["templates"] + 1)),
        configs=tuple(config.name for config in CONFIGS[specification["protocol"]]),
        trials=tuple(range(specification["trials"])),
    )
    return {Pair(m, t): shape for m in specification["models"] for t in specification["temperatures"]}


def silence_of(manifest: Mapping[str, Any]) -> Silence:
    """How a run was told to read silence. Manifests of earlier versions and of other programs do not say it."""
    kept = (manifest.get("options") or {}).get("millstone") or {}
    return "literal" if kept.get("silence") == "literal" else "unscored"


class _Line(Struct, frozen=True):
    id: str
    model: str
    temperature: float | None = None
    cost: float | None = None
    truncated: bool = False
    text: str | None = None


def read_done(folder: RunFolder) -> Done:
    """What the journals hold, every line checked. Raises DamagedJournal, or RecordError where a line is no record."""
    ids: dict[Pair, set[str]] = {}
    answered: set[str] = set()
    cut: Counter[str] = Counter()
    cost = 0.0
    for journal in (folder.records, folder.failures):
        for line in _lines(journal.read(), str(journal.path)):
            ids.setdefault(Pair(line.model, line.temperature), set()).add(line.id)
            cost += line.cost or 0.0
            if journal is not folder.records:
                continue
            if line.truncated and not (line.text or "").strip():
                cut[line.model] += 1
            else:
                answered.add(line.model)
    return Done(ids, cost, frozenset(answered), {model: cut[model] for model in cut.keys() - answered})


def _lines(journal: Iterable[bytes], source: str) -> Iterator[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    for number, line in enumerate(journal, 1):
        try:
            yield decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{source}: line {number}: {error}") from error


async def run_sweep(runner: Runner, folder: RunFolder, grid: Grid, asked: Asked, done: Done) -> list[Stop]:
    """Ask what is not done. Gives the stops that left calls pending; raises LocalFault once every pair has ended.

    Each pair has an iterator and a run of its own, so a model that stops or crawls never holds another one up.
    """
    sink = folder.sink(lambda outcome: row(outcome, asked.reading))
    stops: dict[tuple[str, str], Stop] = {}
    faults: list[LocalFault] = []

    async def run_pair(pair: Pair) -> None:
        is_done = done.of(pair).__contains__
        spread = 0 if pair.model in done.answered else _SPREAD
        max_tokens = asked.max_tokens_of(pair.model)
        made = calls(grid, pair.model, pair.temperature, max_tokens, is_done, spread=spread)
        try:
            async for _ in runner.run(made, sink):
                pass
        except Stopped as error:
            stops.update({(stop.lane, stop.reason): stop for stop in error.stops})
        except LocalFault as fault:
            # Every pair writes the same folder: the others finish what is in flight and send nothing more.
            runner.halt("local_fault", str(fault))
            faults.append(fault)

    async with asyncio.TaskGroup() as group:
        for pair in asked.pairs():
            group.create_task(run_pair(pair), name=f"millstone {pair}")
    if faults:
        raise faults[0]
    return list(stops.values())
