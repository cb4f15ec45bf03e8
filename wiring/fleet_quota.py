"""One quota for the machines of a Ray cluster without a server: its owner, an actor that the cluster knows by name.

Whoever finds no owner makes one, and it stays when a run ends, so runs on one cluster share their quotas. What an owner
counted is gone with it. Why no sliding minute then holds more than the quota: An owner stores words only for `_SURE_S`
after it last asked the cluster for its own machine and was told that it is alive. Another owner of this name is made
only after the cluster counts the first as dead, thus after that question, or after its process has ended. So what the
first one granted was granted at most `_SURE_S` after the second one was made; and the second one counts itself as
started only then. For a window from its start a ledger grants nothing under a quota (`engine/shared/quota.py`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

from ..engine.shared.owner import ExchangeLost, Held, KeptLedgers

_NAME, _NAMESPACE = "millstream-quota-1", "millstream"
_SURE_S, _ASK_EVERY_S = 10.0, 2.0
# One that gives no answer for so long has ended, or its machine is cut off. It may have to start first.
_ANSWER_S, _START_S = 30.0, 120.0
# Exchanges of all workers at once.
_AT_ONCE = 1000


class QuotaOwner:
    """The actor's process."""

    def __init__(self) -> None:
        ahead_s = time.time() - time.monotonic()
        started_at = time.monotonic() + ahead_s + _SURE_S
        self._ledgers = KeptLedgers(lambda: time.monotonic() + ahead_s, started_at)
        self._sure_at = time.monotonic()
        self._asking: asyncio.Task[None] | None = None

    async def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        """Does what `Exchange.exchange` says."""
        if time.monotonic() > self._sure_at + _ASK_EVERY_S and (self._asking is None or self._asking.done()):
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        if self._asking is not None and not self._is_sure:
            await asyncio.wait((self._asking,))
        if not self._is_sure:
            raise ExchangeLost
        return self._ledgers.exchange(name, version, words, who)

    @property
    def _is_sure(self) -> bool:
        return time.monotonic() < self._sure_at + _SURE_S

    async def _ask(self) -> None:
        """Asks the cluster whether it counts this machine as alive."""
        ray: Any = import_module("ray")
        began, here = time.monotonic(), ray.get_runtime_context().get_node_id()
        with suppress(ray.exceptions.RayError, RuntimeError):
            nodes: list[dict[str, Any]] = await asyncio.to_thread(ray.nodes)
            if any(node["NodeID"] == here and node["Alive"] for node in nodes):
                self._sure_at = began


class ClusterLedgers:
    """The way of one process to the owner."""

    title = "the cluster's quota"

    def __init__(self) -> None:
        self._actor: Any = None

    def __repr__(self) -> str:
        return f"<ClusterLedgers [{'known' if self._actor is not None else 'unknown'}]>"

    async def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        """Does what `Exchange.exchange` says. Makes an owner if there is none."""
        ray: Any = import_module("ray")
        within_s = _ANSWER_S
        try:
            if self._actor is None:
                within_s, self._actor = _START_S, await asyncio.to_thread(_owner, ray)
            async with asyncio.timeout(within_s):
                held: Held = await self._actor.exchange.remote(name, version, words, who)
        except (ray.exceptions.RayError, TimeoutError, ValueError) as error:
            self._actor = None
            raise ExchangeLost from error
        return held


def _owner(ray: Any) -> Any:
    """Returns the owner, which is made if there is none."""
    place = {"name": _NAME, "namespace": _NAMESPACE, "lifetime": "detached", "get_if_exists": True}
    return ray.remote(num_cpus=0, max_concurrency=_AT_ONCE, **place)(QuotaOwner).remote()
