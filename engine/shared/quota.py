"""One quota for the processes of several machines: ledgers whose words are kept by an owner, such as a server.

An exchange reads a lane's words, computes on a copy with the ledger's own arithmetic, and has the owner store the copy
if nobody else stored another meanwhile; else it computes again. Everything is in the owner's time.

Why no sliding minute holds more than the quota: A process takes sends in blocks, which can be sent only until the
owner's clock shows an end, and which are counted at that end, so at the time of their sends or later. Of all blocks
with a send in some minute, look at the one that was stored last. When it was computed, the owner's clock showed no more
than at its sends, and the others, whose sends are less than a minute older, were counted in the ledger's window or
after it; so the sum that was compared with the quota had all of them. A request that is written after its block's end
takes a send of another block. What is left of a block is given back; that of a dead process leaves the window.

What the owner forgets, it can't count: for as long as a window, nothing is granted under a quota after the owner has
started, after its clock was set, or if a process finds that its words were lost.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from ..endpoint import Withdrawn
from ..fault import Stop
from ..lanes.key_gate import KeyGate
from ..lanes.ledger import (
    AT_ONCE,
    BOOT,
    HEAD,
    HELD_US,
    LATE_US,
    TICK_S,
    WAITED_US,
    WORDS,
    WRITER,
    Ledger,
    advance,
    is_sound,
)
from ..limits import Limit, Quota, Tokens
from ..remarks import remark
from .owner import Exchange, ExchangeLost, Held, OwnerClock
from .tidings import NOTHING, Tidings, tidings_in

# What calls wait for while an exchange is under way or not possible.
SHARED = "shared cache"
# All that counts in a ledger was sent less than this long ago, the longest time of a block included.
WINDOW_S = 64.0
# How long a block may be used. If the owner answers late, longer: then its sends also count for longer. Ticks have room
# for three seconds.
_BLOCK_S = 1.0
_BLOCK_MOST_S = 3.0
# A lane that has to wait asks again after this time at the earliest; corrections travel after this time at the latest.
_GAP_S = 0.1
_FLUSH_S = 1.0
# Sending time that is lost is made up if the next exchange comes within the time of so many answers.
_MADE_UP_ANSWERS = 6
# So many blocks that end before they are known are no accident.
_LATE_MOST = 10
# How long a process waits if it is another one's turn.
_TURN_S = 0.02
Correction = tuple[int, tuple[int, ...], tuple[int, ...]]
# While an exchange is under way its end serves the queue; this is for one that never ends.
_LOOK_AGAIN_S = 1.0
_BYTES = 8 * WORDS
# A block counts under the owner's time, and so many ticks later for each time that its words were begun anew: nothing
# is given back that these don't hold.
_ANEW_TICKS = 1 << 34


class SharedQuota:
    """The ledgers of one engine that an owner keeps. `window_s`: how long nothing is granted after it has started."""

    def __init__(self, owner: Exchange, chance: Random, *, window_s: float = WINDOW_S) -> None:
        self.window_s, self.chance = window_s, chance
        self.clock = OwnerClock()
        self._owner, self._who = owner, os.urandom(8)
        self.under_way: set[asyncio.Task[None]] = set()
        self._is_held = False
        self._late = 0

    def __repr__(self) -> str:
        return f"<SharedQuota [{len(self.under_way)} exchanges under way, {self.clock}]>"

    def ledger(self, name: str, quota: Quota) -> SharedLedger:
        return SharedLedger(quota, name, self)

    async def exchange(self, name: str, version: int, words: bytes) -> Held:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        held = await self._owner.exchange(name, version, words, self._who)
        self.clock.note(asked, loop.time(), held.now_s)
        return held

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return task

    def note_held(self, seconds: float, uptime_s: float) -> None:
        """Says once that lanes wait because the owner can have forgotten what was sent."""
        if not self._is_held:
            self._is_held = True
            why = "has lost what was counted, or its clock was set"
            if uptime_s < self.window_s:
                why = f"started {max(0.0, uptime_s):.0f} s ago and may have forgotten what was sent before"
            remark(f"{self._owner.title} {why}: calls under a quota wait {seconds:.0f} s")

    def note_use(self, *, is_late: bool) -> None:
        """Says once that the owner is too far away, if block after block has ended before it was known."""
        self._late = self._late + 1 if is_late else 0
        if self._late == _LATE_MOST:
            seconds = self.clock.took_s
            remark(f"{self._owner.title} answers in {seconds:.1f} s, too late for a quota: its calls wait")

    async def close(self, within_s: float = 2.0) -> None:
        """Waits for exchanges under way, such as the last ones of lanes that were closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.under_way:
                    await asyncio.wait(self.under_way)
        for task in self.under_way:
            task.cancel()


class SharedLedger(Ledger):
    """The ledger of one lane that the processes of several machines share, under `name`. `on_change` is called after
    each exchange; `gate`: what learns for others, and adopts what they learned; None: nothing does."""

    block_most = 256
    block_share = 1.0

    def __init__(self, quota: Quota, name: str, shared: SharedQuota) -> None:
        self.gate: KeyGate | None = None
        self.on_change: Callable[[], None] = lambda: None
        self._name, self._shared = name, shared
        self._held: Held | None = None
        self._held_at = 0.0
        # When calls may be tried again, and for what they wait until then.
        self._denied: tuple[float, str] = (0.0, "")
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        # When the words were begun, and how many were begun before those.
        self._began_us, self._anew, self._jumps, self._version, self._stored_at = 0, 0, 0, 0, 0.0
        self._joined_s: float | None = None
        self._untold, self._tail = NOTHING, b""
        super().__init__(quota)

    def __repr__(self) -> str:
        return f"<SharedLedger {self._name} [{self._left} in hand, {'asking' if self._task else 'idle'}]>"

    def set_quota(self, quota: Quota) -> None:
        super().set_quota(quota)
        self._denied = (0.0, "")

    def _take_anew(self, now: float, tokens: Tokens, *, is_tried: bool) -> tuple[float, str]:
        again_at, reason = self._denied
        if again_at > now:
            return again_at - now, reason
        self._begin(tokens)
        return _LOOK_AGAIN_S, SHARED

    def move(self, counted_at: float, now: float, tokens: Tokens) -> float:
        """Takes another send if the block of this one has ended. Raises Withdrawn if there is none at once."""
        anew, at = divmod(counted_at, _ANEW_TICKS * TICK_S)
        clock = self._shared.clock
        if (anew, self._jumps) == (self._anew, clock.jumps) and now <= clock.when(at):
            return counted_at
        if self.take(now, tokens)[0] > 0:
            raise Withdrawn
        less = (-1, -tokens.input, -tokens.output)
        self._owe((int(counted_at / TICK_S), less, (*less, -tokens.total)))
        return self.counted_at

    def settle(self, counted_at: float, reserved: Tokens, used: Tokens, *, requests: int = 1) -> None:
        super().settle(counted_at, reserved, used, requests=requests)
        self._owe()
        if used.total < reserved.total and not self._left:
            self._denied = (min(self._denied[0], self._held_at + _GAP_S), self._denied[1])

    def empty_in_s(self, now: float) -> float:
        if self._held is None:
            self._begin()
            return TICK_S
        return super().empty_in_s(now)

    def _window(self, now: float) -> tuple[memoryview, float]:
        """Returns the last minute as of the latest exchange, and the owner's time."""
        if self._held is None:
            return _words_of(b""), now
        words, now = _words_of(self._held.words), self._shared.clock.read(now)
        advance(words, int(now / TICK_S))
        return words, now

    def tell(self, *, limits: tuple[Limit, ...] = (), pause_s: float = 0.0, stop: Stop | None = None) -> None:
        if self.gate is not None:
            self._untold = self._untold.joined(Tidings(limits, pause_s, stop), 0.0)
            self._begin()

    def close(self) -> None:
        """Gives back what is left, with an exchange that `SharedQuota.close` waits for."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._end_block()
        self._flush()

    # Exchanges

    def _owe(self, *corrections: Correction) -> None:
        """Adds corrections, and sees to it that all travel soon."""
        self._owed += corrections
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if asyncio.get_running_loop().time() >= self._until:
            self._end_block()
        elif self._left:
            self._owe()
            return
        if self._owed or self._untold != NOTHING:
            self._begin()

    def _begin(self, wanted: Tokens | None = None) -> None:
        if self._task is None:
            self._task = self._shared.begin(self._exchange(wanted))

    async def _exchange(self, wanted: Tokens | None) -> None:
        """Has corrections and tidings stored, and a block if one is wanted."""
        loop, shared, size = asyncio.get_running_loop(), self._shared, self._size
        self._end_block()
        (owed, self._owed), (untold, self._untold) = (self._owed, []), (self._untold, NOTHING)
        try:
            if self._held is None or loop.time() > self._held_at + _FLUSH_S:
                self._held, self._held_at = await shared.exchange(self._name, 0, b""), loop.time()
            while True:
                held, now, jumps, self._size = self._held, loop.time(), shared.clock.jumps, size
                at = shared.clock.read(now)
                lasts_s = min(_BLOCK_MOST_S, max(_BLOCK_S, 0.5 + 3 * shared.clock.took_s))
                words, anew, wait = self._computed(held, owed, wanted, at, lasts_s)
                # Nothing of the block may be used before it is stored.
                block, self._left = (self._left, self._left_input, self._left_output), 0
                self._left_input = self._left_output = 0
                tail = held.words[_BYTES:]
                if untold != NOTHING:
                    tail = msgspec.json.encode(tidings_in(tail).joined(untold, at))
                offered = words.tobytes() + tail
                self._held = await shared.exchange(self._name, held.version, offered)
                self._held_at = loop.time()
                if self._held.is_stored:
                    break
                if self._held.version == held.version:
                    await asyncio.sleep(_TURN_S)
        except ExchangeLost:
            self._held, self._denied = None, (loop.time() + _LOOK_AGAIN_S, SHARED)
            # What is counted twice is too much; what is given back twice would be too little.
            self._owed[:0] = map(_only_more, owed)
            self._untold = untold.joined(self._untold, 0.0)
        else:
            self._jumps, self._version, self._stored_at = jumps, self._held.version, self._held_at
            self._began_us, self._anew = words[BOOT], anew
            self._denied = now + wait[0], wait[1]
            if block[0]:
                self._left, self._left_input, self._left_output = block
                self._from = self._denied[0]  # calls are denied until then
                until = at + wait[0] + lasts_s
                self.counted_at = until + anew * _ANEW_TICKS * TICK_S
                self._until = min(shared.clock.when(until), now + wait[0] + lasts_s)
                shared.note_use(is_late=self._until <= self._held_at)
            if self._limits and (held_s := self._held_until(self._held, words) - at) > 0:
                # The owner may also have started meanwhile.
                shared.note_held(held_s, self._held.uptime_s)
                self._end_block()
                self._denied = now + held_s, SHARED
        finally:
            self._task = None
        if self._is_closed or (self._untold != NOTHING and self._held is not None):
            self._end_block()
            if self._held is not None and (self._owed or self._untold != NOTHING):
                self._begin()
        elif self._owed or self._left or self._untold != NOTHING:
            self._owe()
        if not self._is_closed:
            self._adopt()
            self.on_change()

    def _computed(
        self, held: Held, owed: list[Correction], wanted: Tokens | None, at: float, lasts_s: float
    ) -> tuple[memoryview, int, tuple[float, str]]:
        """Returns the words with corrections and, if one is wanted, a block; how many were begun before them; and the
        wait until the block may be used or until one may be asked for again."""
        words = self._sound_words(held, at)
        anew = self._anew + (words[BOOT] != self._began_us)
        later, self._owed = self._owed, [_in_words(anew, *one) for one in owed]
        self._catch_up(words, at)
        self._owed = later
        words[WRITER] = int.from_bytes(os.urandom(7))
        if wanted is None:
            return words, anew, AT_ONCE
        if self._limits and (held_s := self._held_until(held, words) - at) > 0:
            return words, anew, (held_s, SHARED)
        took_s = self._shared.clock.took_s
        wait_s, reason = self._take_block(words, at, wanted, int((at + lasts_s) / TICK_S) + anew * _ANEW_TICKS)
        if wait_s > 0:
            # A block is reserved as soon as it is near, so that the nearest process is not always the first.
            near_s, wait_s = _BLOCK_MOST_S - lasts_s, max(wait_s + 1e-5, _GAP_S, 3 * took_s)
            tick = int((at + wait_s + lasts_s) / TICK_S) + anew * _ANEW_TICKS
            if wait_s > near_s or self._take_block(words, at + wait_s, wanted, tick)[0] > 0:
                wait_s = max(_GAP_S, wait_s - near_s * self._shared.chance.uniform(0.5, 1.0))
        # What is lost while the owner is asked is made up, by whoever asks next.
        words[WAITED_US] = max(words[WAITED_US], int(1e6 * (at + _MADE_UP_ANSWERS * took_s)) - LATE_US)
        return words, anew, (wait_s, reason)

    def _sound_words(self, held: Held, at: float) -> memoryview:
        """Returns a copy of the words. They are begun anew, and nothing is granted for a window, if they are damaged or
        lack what this process knows was stored."""
        words, window_us, at_us = _words_of(held.words), int(1e6 * self._shared.window_s), int(1e6 * at)
        is_member = self._began_us != 0 and self._held_at - self._stored_at < self._shared.window_s
        is_renewed = is_member and words[BOOT] not in (0, self._began_us)
        is_lost = is_member and not is_renewed
        is_lost &= not words[BOOT] or held.version < self._version or self._jumps != self._shared.clock.jumps
        is_lost |= bool(held.words) and not (words[BOOT] and is_sound(words))
        is_lost |= words[HEAD] * TICK_S > at + _BLOCK_MOST_S
        if is_lost or not words[BOOT]:
            words[:] = _words_of(b"")
            words[BOOT] = at_us
            advance(words, int(at / TICK_S))
            words[HELD_US] = at_us + window_us if is_lost else 0
        elif is_renewed and words[HELD_US] < words[BOOT] + window_us:
            # Who began them anew did not know that any were lost.
            words[HELD_US] = at_us + window_us
        return words

    def _held_until(self, held: Held, words: memoryview) -> float:
        """Returns before which time nothing is granted, since the owner may have forgotten what was sent."""
        return max(words[HELD_US] / 1e6, held.now_s - held.uptime_s + self._shared.window_s)

    def _adopt(self) -> None:
        """Has the gate adopt what other processes learned since the latest exchange."""
        held, gate = self._held, self.gate
        if held is None or gate is None:
            return
        self._joined_s = held.now_s if self._joined_s is None else self._joined_s
        if (tail := held.words[_BYTES:]) == self._tail:
            return
        self._tail, tidings, now = tail, tidings_in(tail), asyncio.get_running_loop().time()
        gate.adopt(tidings.limits)
        if (pause_s := tidings.paused_until - held.now_s) > 0:
            gate.pause(pause_s, "another process on the shared cache got this answer", now)
        # A stop from before may have been mended.
        if tidings.stop is not None and tidings.stopped_at > self._joined_s:
            gate.stop(tidings.stop.reason, tidings.stop.detail)


def _words_of(held: bytes) -> memoryview:
    """Returns the words of a ledger; zeros if there are none."""
    return memoryview(bytearray(held[:_BYTES] if len(held) >= _BYTES else _BYTES)).cast("q")


def _in_words(anew: int, tick: int, changes: tuple[int, ...], paced: tuple[int, ...]) -> Correction:
    """Returns a correction in the owner's ticks. One of what was counted in earlier words gives nothing back."""
    begun, tick = divmod(tick, _ANEW_TICKS)
    return (tick, changes, paced) if begun == anew else _only_more((tick, changes, paced))


def _only_more(correction: Correction) -> Correction:
    """Returns a correction that gives nothing back."""
    tick, changes, paced = correction
    return tick, tuple(max(0, one) for one in changes), tuple(max(0, one) for one in paced)
