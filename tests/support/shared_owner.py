"""An owner of shared ledgers in memory, processes that are as far from it as a test says, and what they truly sent. In
the loop's own time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from millstream.engine.endpoint import Withdrawn
from millstream.engine.limits import Quota, Tokens
from millstream.engine.shared.owner import ExchangeLost, Held, KeptLedgers
from millstream.engine.shared.quota import SharedLedger, SharedQuota

Delay = Callable[[], float]


class MemoryOwner(KeptLedgers):
    """Keeps words by name. `ahead_s`: its clock beside the loop's."""

    def __init__(self) -> None:
        self.ahead_s = 1.7e9
        super().__init__(lambda: asyncio.get_running_loop().time() + self.ahead_s, self.ahead_s - 1e6)

    def restart(self, words: dict[str, tuple[int, bytes]]) -> None:
        """Starts it anew with these words, such as none or older ones."""
        self.started_at, self.words = asyncio.get_running_loop().time() + self.ahead_s, dict(words)

    def damage(self, name: str) -> None:
        """Damages words, under another version: an exchange under way would store sound ones again."""
        self._latest += 1
        self.words[name] = self._latest, b"x" * 7_000


class Link:
    """The way to an owner: how long a message takes, and the share of messages that get lost in either direction."""

    def __init__(self, owner: MemoryOwner, chance: random.Random, delay: Delay, lost: float = 0.0) -> None:
        self.title = "the server of the shared cache"
        self.owner, self.chance, self.delay, self.lost = owner, chance, delay, lost
        self.is_cut = False

    async def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        started_at = self.owner.started_at
        await self._pass(started_at)
        held = self.owner.exchange(name, version, words, who)
        await self._pass(started_at)
        return held

    async def _pass(self, started_at: float) -> None:
        await asyncio.sleep(self.delay())
        if self.is_cut:
            await asyncio.get_running_loop().create_future()
        if started_at != self.owner.started_at or self.chance.random() < self.lost:
            await asyncio.sleep(0.2)
            raise ExchangeLost


class Worker:
    """A process that sends as fast as it may, or at a pace of its own. Some of its calls are written some time after
    they were granted; each is answered later. `sends`: when each was written, and the tokens that it used."""

    def __init__(self, link: Link, quota: Quota, seed: int, *, pause_s: float = 0.0) -> None:
        self.link, self.pause_s = link, pause_s
        self.sends: list[tuple[float, int]] = []
        self.chance = random.Random(seed)
        self.shared = SharedQuota(link, self.chance)
        self.ledger = SharedLedger(quota, "lane", self.shared)
        self._answered = asyncio.Event()
        self.ledger.on_change = self._answered.set
        self._tasks: set[asyncio.Task[None]] = set()
        self._begin(self._work())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        loop, chance = asyncio.get_running_loop(), self.chance
        while True:
            tokens = Tokens(chance.randint(1, 500), chance.randint(1, 300))
            while (wait_s := self.ledger.take(loop.time(), tokens)[0]) > 0:
                self._answered.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._answered.wait(), wait_s)
            self._begin(self._send(tokens, self.ledger.counted_at))
            if self.pause_s:
                await asyncio.sleep(self.pause_s * chance.uniform(0.5, 1.5))

    async def _send(self, tokens: Tokens, counted_at: float) -> None:
        loop, chance = asyncio.get_running_loop(), self.chance
        if chance.random() < 0.1:
            await asyncio.sleep(chance.choice((0.001, 0.01, 3.0)) * chance.random())
        try:
            counted_at = self.ledger.move(counted_at, loop.time(), tokens)
        except Withdrawn:
            self.ledger.settle(counted_at, tokens, Tokens(), requests=0)
            return
        used = Tokens(tokens.input, int(tokens.output * chance.random()))
        self.sends.append((loop.time(), used.total))
        await asyncio.sleep(chance.expovariate(1.0))
        self.ledger.settle(counted_at, tokens, used)

    def kill(self) -> None:
        """Ends it as a killed process ends: nothing is given back or settled any more."""
        self.link.is_cut = True
        for task in self._tasks:
            task.cancel()

    async def leave(self) -> None:
        """Ends it as a process ends that closes its engine."""
        for task in self._tasks:
            task.cancel()
        self.ledger.close()
        await self.shared.close()
