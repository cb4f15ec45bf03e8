"""The words of shared ledgers on the server that several machines share."""

from __future__ import annotations

import asyncio

from .connection import Script, SharedConnection
from .owner import ExchangeLost, Held

_LEDGER, _TURN = b"millstream:1:ledger:", b"millstream:1:turn:"

# A value is its version, of 16 digits, and the words. The same words again are those whose reply was lost. A version is
# never used twice, since it is at least the time in microseconds. Ledgers that nobody uses end after an hour.
_EXCHANGE = Script(
    """#!lua flags=allow-oom
local stored, time, is_stored = redis.pcall('GET', KEYS[1]), redis.call('TIME'), 0
if type(stored) ~= 'string' then stored = '' end
local version, words = tonumber(string.sub(stored, 1, 16)) or 0, string.sub(stored, 17)
if ARGV[2] ~= '' and words == ARGV[2] then
  is_stored = 1
elseif ARGV[2] ~= '' then
  local turn = redis.call('GET', KEYS[2])
  if not turn or turn == ARGV[3] then
    if version == tonumber(ARGV[1]) then
      version, is_stored = math.max(version + 1, time[1] * 1000000 + time[2]), 1
      redis.call('SET', KEYS[1], string.format('%016.0f', version) .. ARGV[2], 'PX', 3600000)
      redis.call('DEL', KEYS[2])
    else
      redis.call('SET', KEYS[2], ARGV[3], 'PX', 1000)
    end
  end
end
if is_stored == 1 then words = '' end
return {is_stored, string.format('%.0f', version), words, time[1], time[2]}"""
)


class ServerLedgers:
    """The ledgers that are kept over one connection."""

    title = "the server of the shared cache"

    def __init__(self, connection: SharedConnection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"<ServerLedgers over {self._connection}>"

    async def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        """Does what `Exchange.exchange` says. Waits while the server is away."""
        connection, began, key = self._connection, asyncio.get_running_loop().time(), name.encode()
        reply = await connection.ask(_EXCHANGE, (_LEDGER + key, _TURN + key), (b"%d" % version, words, who))
        assert isinstance(reply, list)
        is_stored, stored_version, stored_words, seconds, microseconds = reply
        if words and not is_stored and connection.connected_at > began:
            raise ExchangeLost  # the words may have been stored before, and others after them
        now_s = int(seconds) + int(microseconds) / 1e6
        stored = words if is_stored else stored_words
        return Held(bool(is_stored), int(stored_version), stored, now_s, connection.uptime_s)
