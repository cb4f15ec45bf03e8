"""A Chameleon run: what of it is done, and the conversations of all its pairs at once.

Owns that a turn gets one journal line and never two, how many conversations are under way, and that pairs get on side
by side. Is given an open folder and whatever calls, searches and reads; builds no engine, prints nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from ...engine.admission import Stop
from ...engine.fault import LocalFault, Stopped
from ...engine.lane import Lane
from ...engine.pairs import Done, Pair
from ...engine.run_folder import RunFolder
from .asked import Asked, turns_of
from .conversation import Manner, Script, Talk, Turn
from .dataset import Conversation, Dataset
from .histories import UNRECORDED, Histories, histories
from .judge import Judge
from .order import places_in_order
from .outside import Outside
from .records import Record, encode
from .retrieval import Wanted
from .samples import Samples

AT_ONCE = 64
AT_ONCE_MAX = 512
# A turn asks the model under test twice and takes some half a minute.
_CONVERSATIONS_PER_RPM = 0.25


def at_once_of(lanes: Iterable[Lane]) -> int:
    """How many conversations keep the lanes of the models under test busy: 64, or more where they declare requests a
    minute for more. No more than they may have calls in flight."""
    wanted = sum(
        min(lane.concurrency, lane.rpm * _CONVERSATIONS_PER_RPM) if lane.rpm is not None else 0 for lane in lanes
    )
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


async def run_sweep(
    outside: Outside,
    folder: RunFolder,
    dataset: Dataset,
    asked: Asked,
    done: Done,
    item_ended: Callable[[], None] = lambda: None,
    at_once: int = AT_ONCE,
) -> list[Stop]:
    """Hold what is not over. Gives the stops that left turns pending; raises LocalFault once everything under way has
    ended. `item_ended` is told of every line."""
    sweep = _Sweep(outside, folder, dataset, asked, done, item_ended)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(min(at_once, len(dataset.conversations) * len(asked.pairs))):
                group.create_task(sweep.work(), name=f"chameleon {number}")
                # What is stored needs no wait: all of them begun at once would hold up the loop.
                await asyncio.sleep(0)
    finally:
        sweep.note_unrecorded()
    if sweep.faults:
        raise sweep.faults[0]
    return list(sweep.stops.values())


class _Sweep:
    """Workers draw conversations from it, each from the pair that has the fewest under way: so that a slow model holds
    up its own share alone."""

    def __init__(
        self,
        outside: Outside,
        folder: RunFolder,
        dataset: Dataset,
        asked: Asked,
        done: Done,
        item_ended: Callable[[], None],
    ) -> None:
        self.stops: dict[tuple[str, str], Stop] = {}
        self.faults: list[LocalFault] = []
        self._outside = outside
        self._folder = folder
        self._item_ended = item_ended
        self._judge = Judge(
            outside, asked.judge, asked.judge_prompt, asked.tokens[asked.judge], asked.judge_temperature
        )
        self._under_way = dict.fromkeys(asked.pairs, 0)
        self._unrecorded = 0.0
        samples = Samples(dataset.whole or dataset.conversations, asked.turns, asked.order, asked.seed)
        turns = turns_of(dataset, asked.turns)
        found = histories(folder, turns, done)
        self._waiting = {
            pair: scripts(dataset.conversations, asked, samples, pair, done.of(pair), found) for pair in asked.pairs
        }
        self._manners = {pair: manner_of(asked, pair) for pair in asked.pairs}

    async def work(self) -> None:
        # Taking never awaits, so no conversation is held twice.
        while (taken := self._take()) is not None:
            pair, script = taken
            self._under_way[pair] += 1
            talk = Talk(self._outside, self._manners[pair], self._judge, script, self._keep)
            try:
                await talk.hold()
            except Stopped as error:
                self._note(pair, error.stops)
            except LocalFault as fault:
                self._halt(fault)
            finally:
                self._unrecorded += talk.unrecorded
                self._under_way[pair] -= 1

    def _take(self) -> tuple[Pair, Script] | None:
        while self._waiting:
            pair = min(self._waiting, key=self._under_way.__getitem__)
            script = next(self._waiting[pair], None)
            if script is not None:
                return pair, script
            del self._waiting[pair]
        return None

    def _keep(self, record: Record) -> None:
        """A line is safe before anyone hears of it."""
        journal = self._folder.records if record.stance is not None else self._folder.failures
        journal.append(encode(record))
        journal.flush()
        if self._folder.fault is not None:
            self._halt(self._folder.fault)
        self._item_ended()

    def _halt(self, fault: LocalFault) -> None:
        # All pairs write the same folder: what is in flight is finished, and nothing more is sent.
        if not self.faults:
            self._outside.halt("local_fault", str(fault))
        self.faults.append(fault)
        self._waiting.clear()

    def _note(self, pair: Pair, stops: Iterable[Stop]) -> None:
        for stop in stops:
            if stop.reason == "local_fault":
                self._halt(LocalFault(stop.detail))
                continue
            self.stops[stop.lane, stop.reason] = stop
            # A model's own stop leaves the others to go on. What else stops (judge, search, shared queries) is
            # everybody's; a model that is both is met again by the next pair.
            if stop.lane == pair.model:
                for other in [other for other in self._waiting if other.model == pair.model]:
                    del self._waiting[other]
            else:
                self._waiting.clear()

    def note_unrecorded(self) -> None:
        """What turns cost that got no line: they will be answered from the cache, for nothing, and a limit on the cost
        must not forget them."""
        if self._unrecorded and self._folder.fault is None:
            before = float(self._folder.manifest.get(UNRECORDED, 0.0))
            # A disk that takes no manifest is told by whoever closes the run.
            with suppress(OSError):
                self._folder.write_manifest(**{UNRECORDED: before + self._unrecorded})


def manner_of(asked: Asked, pair: Pair) -> Manner:
    by = asked.queries_by or pair
    return Manner(
        pair=pair,
        wanted=Wanted(
            by=by,
            is_own=asked.queries_by is None or by == pair,
            search=asked.search,
            pages=asked.pages,
            page_tokens=asked.page_tokens,
        ),
        tokens=asked.tokens[pair.model],
        max_tokens=asked.max_tokens,
        keeps_pages=asked.keeps_pages,
    )


def scripts(
    conversations: Iterable[Conversation],
    asked: Asked,
    samples: Samples,
    pair: Pair,
    done: set[str],
    histories: Histories,
) -> Iterator[Script]:
    """The conversations of one pair that are not over, lazily. One that has failed in a turn is left alone until its
    failures are retried."""
    for conversation in conversations:
        places = places_in_order(conversation, asked.turns, asked.order, asked.seed)
        ids = [f"{conversation.id}/{number}" for number in range(1, len(places) + 1)]
        ended = sum(turn in done for turn in ids)
        if ended == len(ids):
            continue
        held = histories.of(pair, conversation.id) if ended else {}
        if ended > len(held):
            continue
        turns = tuple(
            Turn(number, conversation.questions[place], samples.of(conversation.id, number))
            for number, place in enumerate(places, 1)
        )
        yield Script(conversation, turns, held)
