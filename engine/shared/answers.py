"""The answers and final failures that several machines share, and which machine sends a call that none has answered.

Owns what is kept on the server for this: values, leases, the sign of life of each engine. The local cache stands
before it: a value goes into the local cache before a call uses it, and an answer is put here after it is stored there.
Knows neither calls nor lanes.
"""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Literal, cast

from msgspec import structs

from ..fault import LocalFault
from ..remarks import remark
from ..store.cache import Cache
from ..store.entries import StoredAnswer, StoredFailure, encode, entry_of, failed_of, later_of
from ..store.lmdb_store import is_sealed, sealed
from .connection import Reply, Script, SharedConnection

PREFIX = b"millstream:1:"
_ANSWER, _LEASE, _ENGINE = PREFIX + b"answer:", PREFIX + b"lease:", PREFIX + b"engine:"
# A value: what it is, when it was received, the entry, a checksum over key and value.
_HEAD = struct.Struct(">cd")
_OF_ANSWER, _OF_FAILURE = b"a", b"f"
_ENTRY_MOST = 64 << 20
# An engine that gives no sign of life for so long has ended, and another takes its leases over. After a break, which
# may have kept everybody from giving one, nobody is taken for ended before the same time has passed.
_ENDED_S = 15.0
_SIGN_EVERY_S = 5.0
_LEASE_S = 86_400
# For how long a closing engine waits for values on their way.
_CLOSE_S = 10.0

# Returns a stored value that the caller has not seen, in a list, else whether the caller may send the call, as a Claim:
# `nothing` where it never sends. A value of another type counts as none, and so does that of another key (sealed).
_CLAIM = Script(
    """#!lua flags=allow-oom
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'string' and #stored > 13 and string.sub(stored, 1, 9) ~= ARGV[2] then return {stored} end
if ARGV[1] == '' then return 'nothing' end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then
  if ARGV[3] == '' or redis.call('EXISTS', ARGV[4] .. holder) == 1 then return 'taken' end
end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[5])
return 'ours'"""
)
# Keeps a value, if there is one, unless a later one is there, and gives the lease back.
_PUT = Script(
    """#!lua
local there = redis.pcall('GETRANGE', KEYS[1], 0, 8)
local is_later = ARGV[2] ~= '' and type(there) == 'string' and #there == 9
  and string.find('af', string.sub(there, 1, 1), 1, true)
  and struct.unpack('>d', there, 2) > struct.unpack('>d', ARGV[2], 2)
if ARGV[2] ~= '' and not is_later then redis.call('SET', KEYS[1], ARGV[2]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1"""
)
_GIVE_BACK = Script(
    "#!lua flags=allow-oom\nif redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
)
_SIGN = Script("#!lua flags=allow-oom\nredis.call('SET', KEYS[1], '', 'PX', ARGV[1])")
_END = Script("#!lua flags=allow-oom\nredis.call('DEL', KEYS[1])")


# What the server says about a call: this engine is to send it, another one does, nobody has an answer (where the engine
# never sends), or there was an answer, which is in the local cache now.
Claim = Literal["ours", "taken", "nothing", "stored"]
# Takes what a claim led to: LocalFault if the local cache can't be written.
Claimed = Callable[[Claim | BaseException], None]


class SharedAnswers:
    """What one engine shares over an open connection. `sends` False: it asks, and neither claims nor sends.
    `sign_every_s`, `ended_s`: how often it shows that it lives, and after which silence another counts as ended."""

    def __init__(
        self,
        connection: SharedConnection,
        cache: Cache,
        *,
        sends: bool = True,
        sign_every_s: float = _SIGN_EVERY_S,
        ended_s: float = _ENDED_S,
        close_s: float = _CLOSE_S,
    ) -> None:
        self._connection = connection
        self._cache = cache
        self._engine = os.urandom(12).hex().encode() if sends else b""
        self._sign_every_s, self._ended_s, self._close_s = sign_every_s, ended_s, close_s
        # Who asks about which key; None: it has left since.
        self._questions: dict[bytes, Claimed | None] = {}
        # The head of the latest value that was of no use to who asked.
        self._seen: dict[bytes, bytes] = {}
        self._leases: set[bytes] = set()
        # Values that the server has not confirmed; they stay in the local cache until they are sent.
        self._puts: dict[bytes, asyncio.Future[Reply]] = {}
        self._refused = 0
        if sends:
            self._sign()
            connection.on_again = self._again

    def __repr__(self) -> str:
        state = f"{len(self._questions)} asked, {len(self._leases)} leases, {len(self._puts)} to put"
        return f"<SharedAnswers {self._connection.address} [{state}]>"

    def claim(self, key: bytes, done: Claimed) -> None:
        """Asks the server about a call. `done` is called in a later turn of the loop, unless the key is left before. If
        the key is being asked about, `done` takes the place of who asked."""
        is_asked = key in self._questions
        self._questions[key] = done
        if not is_asked:
            self._ask(key).add_done_callback(partial(self._replied, key))

    def leave(self, key: bytes) -> None:
        """Ends a question, and gives the lease back unless the answer is to be put."""
        self._seen.pop(key, None)
        if key in self._questions:
            self._questions[key] = None
        elif key in self._leases and key not in self._puts:
            self._give_back(key)

    def put(self, key: bytes) -> None:
        """Lets the server have what the local cache has just stored under a key."""
        keys = (_ANSWER + key, _LEASE + key)
        self._puts[key] = put = self._connection.ask(_PUT, keys, lambda: (self._engine, self._value(key)))
        put.add_done_callback(partial(self._put_replied, key))

    async def close(self) -> None:
        """Waits for the values on their way, for a short time, and gives all leases back."""
        if not self._engine:
            return
        self._timer.cancel()
        wait_s = self._close_s if self._puts or not self._connection.is_away else 0.0
        try:
            async with asyncio.timeout(wait_s):
                if self._puts:
                    await asyncio.wait(self._puts.values())
                # After this, no lease of this engine counts.
                await self._connection.ask(_END, (_ENGINE + self._engine,), ())
        except TimeoutError:
            pass
        if count := len(self._puts) + self._refused:
            remark(
                f"{count:,} answers are in this machine's cache alone: the shared cache {self._connection.address} "
                f"{'was full' if self._refused else 'did not answer'}, and other machines may send the same calls"
            )

    # Claims

    def _ask(self, key: bytes) -> asyncio.Future[Reply]:
        def arguments() -> tuple[bytes, ...]:
            may_take_over = asyncio.get_running_loop().time() - self._connection.connected_at >= self._ended_s
            seen = self._seen.get(key, b"")
            return self._engine, seen, b"1" if may_take_over else b"", _ENGINE, b"%d" % _LEASE_S

        return self._connection.ask(_CLAIM, (_ANSWER + key, _LEASE + key), arguments)

    def _replied(self, key: bytes, replied: asyncio.Future[Reply]) -> None:
        done, reply = self._questions.pop(key), replied.result()
        if isinstance(reply, list):
            self._take(key, reply[0], done)
            return
        assert isinstance(reply, bytes)
        claim = cast("Claim", reply.decode())
        if claim == "ours":
            self._leases.add(key)
            if done is None:
                self._give_back(key)
        if done is not None:
            done(claim)

    def _take(self, key: bytes, value: bytes, done: Claimed | None) -> None:
        """Writes a value of the server into the local cache. One that can't be read is asked past."""
        if done is None:
            return
        self._seen[key] = value[: _HEAD.size]
        entry = value_entry(key, value)
        if entry is None:
            self.claim(key, done)
            return
        self._questions[key] = done
        self._cache.put_entry(key, entry, partial(self._stored, key))

    def _stored(self, key: bytes, error: BaseException | None) -> None:
        done = self._questions.pop(key)
        if done is not None:
            done("stored" if error is None else error)

    def _give_back(self, key: bytes) -> None:
        self._leases.discard(key)
        self._connection.ask(_GIVE_BACK, (_LEASE + key,), (self._engine,))

    # Answers

    def _value(self, key: bytes) -> bytes:
        """Returns what the local cache has under a key, as the server keeps it; nothing if that can't be read."""
        try:
            later = later_of(self._cache.get(key), self._cache.failure(key))
        except LocalFault:
            return b""
        return b"" if later is None else value_of(key, later)

    def _put_replied(self, key: bytes, reply: asyncio.Future[Reply]) -> None:
        self._puts.pop(key, None)
        if reply.result() is None:  # the server is full
            if not self._refused:
                remark(
                    f"the shared cache {self._connection.address} is full: answers stay in this machine's cache, and "
                    f"other machines may send the same calls; give its server more memory"
                )
            self._refused += 1
            self._give_back(key)
        self._leases.discard(key)

    # Signs of life

    def _sign_of_life(self) -> asyncio.Future[Reply]:
        return self._connection.ask(_SIGN, (_ENGINE + self._engine,), (b"%d" % (1000 * self._ended_s),))

    def _sign(self) -> None:
        if not self._connection.is_away:
            self._sign_of_life()
        self._timer = asyncio.get_running_loop().call_later(self._sign_every_s, self._sign)

    def _again(self, is_new: bool) -> None:
        """Shows after a break that this engine lives; to a server that was started anew, also which calls it sends."""
        self._sign_of_life()
        if is_new:
            for key in self._leases:
                self._ask(key)


def value_of(key: bytes, entry: StoredAnswer | StoredFailure) -> bytes:
    """Returns the bytes under which the server keeps an entry, with its body inside."""
    kind = _OF_FAILURE if isinstance(entry, StoredFailure) else _OF_ANSWER
    packed = zlib.compress(encode(structs.replace(entry, body_hash=b"")), 1)
    return sealed(key, _HEAD.pack(kind, entry.received_at) + packed)


def value_entry(key: bytes, value: bytes) -> StoredAnswer | StoredFailure | None:
    """Returns the entry of a value; None if it is damaged, or none of ours."""
    if not is_sealed(key, value) or len(value) < _HEAD.size:
        return None
    unpacker = zlib.decompressobj()
    try:
        packed = unpacker.decompress(value[_HEAD.size : -4], _ENTRY_MOST)
    except zlib.error:
        return None
    if not unpacker.eof:
        return None
    return failed_of(packed) if value[:1] == _OF_FAILURE else entry_of(packed)
