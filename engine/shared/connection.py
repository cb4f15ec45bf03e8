"""The connection of one engine to the server that several machines share: what is asked in one turn of the loop goes
out together, and whatever the server has not answered is asked again when it is back.

Owns connecting, batches, deadlines and what the server is; knows neither answers nor quotas. What is asked are scripts.
The reply to one that was run may be lost, so each must be safe to run twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from redis.asyncio import Connection, SSLConnection
from redis.exceptions import AuthenticationError, AuthorizationError, OutOfMemoryError, RedisError, ResponseError

from ..fault import LocalFault
from ..remarks import remark, trouble
from ..server_address import PASSWORD_VARIABLE, USER_VARIABLE, ServerAddress

# Scripts that declare what they do to a full memory need this version.
_VERSION_LEAST = 7
_BATCH_MOST, _BATCH_BYTES = 1024, 8 << 20
_CONNECT_S = 10.0
# A server that is slow is waited for; one that is silent for this long is taken for gone.
_DEADLINE_S = 30.0
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.1, 5.0
# Where nothing is asked for this long, something is: a server that was started anew is to learn soon what it forgot.
_IDLE_S = 0.5


# The errors of a server that can't be reached or does not serve, and of one that is none.
_TROUBLES = RedisError, OSError, EOFError, ValueError


class Script:
    """One script of the server, known to it by its SHA-1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


# All that scripts do, so that a user without the right to it is refused at once.
_PROOF = Script(
    """#!lua flags=allow-oom
redis.call('SET', KEYS[1], '', 'PX', 1000)
return {redis.call('GET', KEYS[1]), redis.call('GETRANGE', KEYS[1], 0, 8), redis.call('EXISTS', KEYS[1]),
  redis.call('DEL', KEYS[1]), redis.call('TIME')}"""
)
_PROOF_KEY = b"millstream:1:proof"
_ARE_YOU_THERE = Script("#!lua flags=no-writes\nreturn 1")


# What a script returned, if anything; None also where the server has no memory left for it.
Reply = bytes | int | list[Any] | None
# Those of a script that depend on when it is sent are made then.
Arguments = Sequence[bytes] | Callable[[], Sequence[bytes]]


class Ask(NamedTuple):
    """One script to run."""

    script: Script
    keys: Sequence[bytes]
    arguments: Arguments
    reply: asyncio.Future[Reply]


class SharedConnection:
    """A connection that is kept until `close`. `on_again` is called when it is back after a break, with whether the
    server was started anew meanwhile; `on_lost` once, with the reason, if it is away for longer than `patience_s`."""

    def __init__(
        self,
        address: ServerAddress,
        *,
        user: str = "",
        password: str = "",
        patience_s: float = 600.0,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self.address = address
        self.patience_s = patience_s
        self.on_again: Callable[[bool], None] = lambda is_new: None
        self.on_lost: Callable[[str], None] = lambda detail: None
        self.connected_at = 0.0
        self._credentials = user, password
        self._deadline_s = deadline_s
        # Which start of the server this is, and when that was by the loop's time: up to a second earlier.
        self._run_id, self._started_at = "", 0.0
        self._link: Connection | None = None
        self._loaded: set[str] = set()
        self._asked: deque[Ask] = deque()
        self._is_asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._away_since: float | None = None
        self._is_given_up = False

    def __repr__(self) -> str:
        state = "away" if self._away_since is not None else "connected" if self._link is not None else "closed"
        return f"<SharedConnection {self.address} [{state}, {len(self._asked)} asked]>"

    @property
    def is_away(self) -> bool:
        """Whether the server does not answer at the moment."""
        return self._away_since is not None

    @property
    def uptime_s(self) -> float:
        """Returns for how long the server has been running, or up to a second less."""
        return asyncio.get_running_loop().time() - self._started_at

    async def open(self) -> None:
        """Connects. Raises LocalFault if the server can't be reached, or is not fit to be shared."""
        try:
            await self._connect(is_first=True)
        except _TROUBLES as error:
            raise LocalFault(
                f"the shared cache {self.address} can't be reached ({_reason(error)}): start its server, or correct "
                f"--cache"
            ) from error
        self._task = asyncio.create_task(self._talk())

    def ask(self, script: Script, keys: Sequence[bytes], arguments: Arguments) -> asyncio.Future[Reply]:
        """Runs a script with the next batch, and returns its reply to come; never, if the connection is closed before.
        A function that makes the arguments is called each time the script is sent."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked.append(Ask(script, keys, arguments, reply))
        self._is_asked.set()
        return reply

    async def close(self) -> None:
        """Ends the connection."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._drop()

    async def _talk(self) -> None:
        """Sends batches for ever, one after the other, and connects again whenever one is not answered."""
        pause_s = _PAUSE_MIN_S
        while True:
            try:
                if self._link is None:
                    await self._connect()
                try:
                    async with asyncio.timeout(_IDLE_S):
                        await self._is_asked.wait()
                except TimeoutError:
                    self.ask(_ARE_YOU_THERE, (), ())
                await self._send_batch()
            except (*_TROUBLES, LocalFault) as error:
                await self._drop()
                self._note_away(_reason(error))
                await asyncio.sleep(pause_s)
                pause_s = min(_PAUSE_MAX_S, 2 * pause_s)
            else:
                pause_s, self._away_since = _PAUSE_MIN_S, None

    def _note_away(self, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now
            trouble(f"the shared cache {self.address} does not answer ({reason}): calls wait for it")
        if now - self._away_since >= self.patience_s and not self._is_given_up:
            self._is_given_up = True
            detail = (
                f"the shared cache {self.address} has not answered for {now - self._away_since:.0f} s ({reason}): "
                f"start its server, then resume"
            )
            self.on_lost(detail)

    async def _send_batch(self) -> None:
        """Sends what is asked at this moment and takes the replies; what has none stays asked."""
        link = self._link
        assert link is not None
        batch: list[Ask] = []
        new: dict[str, str] = {}
        commands: list[tuple[Any, ...]] = []
        size, refusal = 0, None
        try:
            while self._asked and len(batch) < _BATCH_MOST and size < _BATCH_BYTES:
                batch.append(ask := self._asked.popleft())
                script, keys, arguments, _ = ask
                if script.sha not in self._loaded:
                    new[script.sha] = script.text
                arguments = arguments() if callable(arguments) else arguments
                size += sum(map(len, arguments))
                commands.append(("EVALSHA", script.sha, len(keys), *keys, *arguments))
            commands[:0] = (("SCRIPT", "LOAD", text) for text in new.values())
            async with asyncio.timeout(self._deadline_s):
                await link.send_packed_command(link.pack_commands(commands), check_health=False)
                for _ in new:
                    await link.read_response()
                for ask in batch:
                    try:
                        reply = await link.read_response()
                    except OutOfMemoryError:
                        reply = None
                    except ResponseError as error:
                        refusal = error
                        continue
                    if not ask.reply.done():
                        ask.reply.set_result(reply)
        finally:
            self._asked.extendleft(ask for ask in reversed(batch) if not ask.reply.done())
            if not self._asked:
                self._is_asked.clear()
        self._loaded |= new.keys()
        if refusal is not None:
            raise refusal

    # Connecting

    async def _connect(self, *, is_first: bool = False) -> None:
        saves: Any = None
        address, (user, password) = self.address, self._credentials
        kind = SSLConnection if address.is_tls else Connection
        link = kind(
            host=address.host,
            port=address.port,
            db=address.db,
            username=user or None,
            password=password or None,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=_CONNECT_S,
        )
        try:
            async with asyncio.timeout(_CONNECT_S):
                await link.connect()  # type: ignore[no-untyped-call]
                lines = (await _reply_to(link, "INFO")).decode("utf-8", "replace").splitlines()
                info = dict(line.split(":", 1) for line in lines if ":" in line)
                self._check(info)
                with suppress(ResponseError):  # some servers show their settings to nobody
                    saves = await _reply_to(link, "CONFIG", "GET", "save")
                await _reply_to(link, "SCRIPT", "LOAD", _PROOF.text)
                await _reply_to(link, "EVALSHA", _PROOF.sha, 1, _PROOF_KEY)
        except BaseException as error:
            await link.disconnect(nowait=True)
            if isinstance(error, AuthenticationError | AuthorizationError | ResponseError):
                raise LocalFault(
                    f"the server of the shared cache {address} refuses this user ({_reason(error)}): set "
                    f"{USER_VARIABLE} and {PASSWORD_VARIABLE}, or its rights"
                ) from error
            raise
        if is_first and info.get("aof_enabled") == "0" and isinstance(saves, list) and saves[1:] == [b""]:
            remark(
                f"the server of the shared cache {address} writes nothing to its disk: after a restart it has no "
                f"answers and no quotas, and calls that other machines have answered are sent again"
            )
        before, now = self._run_id, asyncio.get_running_loop().time()
        self._run_id, self._started_at = info["run_id"], now - float(info["uptime_in_seconds"])
        self._link, self._loaded, self.connected_at = link, set(), now
        if not is_first:
            self.on_again(before != self._run_id)

    def _check(self, info: dict[str, str]) -> None:
        """Raises LocalFault if the server is not fit to be shared, ConnectionError if it is not ready yet."""
        version = info.get("redis_version", "0")
        why = ""
        if int(version.partition(".")[0]) < _VERSION_LEAST:
            why = f"is version {version}: use Valkey, or Redis {_VERSION_LEAST} or later"
        elif info.get("cluster_enabled") == "1":
            why = "is a cluster: use a server that is none"
        elif info.get("role") == "slave":
            why = "is a replica, which takes no writes: name the server that it follows"
        elif info.get("maxmemory", "0") != "0" and info.get("maxmemory_policy") != "noeviction":
            why = (
                f"drops keys when its memory is full (maxmemory-policy {info.get('maxmemory_policy')}), quotas and "
                f"leases among them: set maxmemory-policy noeviction"
            )
        if why:
            raise LocalFault(f"the server of the shared cache {self.address} {why}")
        if info.get("loading") == "1":
            raise ConnectionError("it is still reading its data from disk")

    async def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            with suppress(*_TROUBLES):
                await link.disconnect(nowait=True)


async def _reply_to(link: Connection, *command: Any) -> Any:
    """Sends one command and returns its reply. Raises ResponseError if the server refuses it."""
    await link.send_command(*command, check_health=False)
    return await link.read_response()


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or "no answer in time"
