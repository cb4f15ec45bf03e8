"""Runs over a scripted site, their folders, and snapshots of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call, Outcome, Reply
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.runs.journal import sealed
from millstream.engine.store.cache import Cache, Mode
from millstream.engine.store.cache_policy import Ages
from millstream.engine.store.entries import BODY_APART
from millstream.engine.store.run_keys import keys_of
from millstream.engine.store.snapshot import Snapshot
from millstream.engine.store.snapshot_writer import SnapshotCounts, pack

M, S = "script/m", "search/s"
OWN = Ages(run_started=1.0)


class Site(ScriptedProvider):
    """Fails what says so, with a response where a host gave one, and answers at length what says so."""

    def __init__(self) -> None:
        super().__init__(self._fault_of)

    @staticmethod
    def _fault_of(prompt: str, at: float) -> Fault | None:
        return Fault("timeout", f"no whole page of {prompt}", "never") if "slow" in prompt else None

    async def send(self, request: Request, cleared: Cleared) -> Response:
        response = await super().send(request, cleared)
        prompt = response.body.decode()
        body = response.body * (BODY_APART // 10) if "long" in prompt else response.body
        status = 404 if "gone" in prompt else 200
        return Response(status, body, latency_ms=random.random(), headers={"content-type": "text/html"})

    def decode(self, response: Response) -> Reply | Fault:
        if response.status == 404:
            return Fault("rejected", "404: there is no such page", "never", 404)
        return super().decode(response)


def outcomes(
    folder: Path,
    site: ScriptedProvider,
    calls: Iterable[Call],
    *,
    mode: Mode = "record",
    snapshot: Snapshot | None = None,
) -> list[Outcome]:
    async def main() -> list[Outcome]:
        served = {WEB: site, S: site, M: site}
        async with engine_over(served, folder, mode=mode, ages=OWN, snapshot=snapshot) as bench:
            return [await bench.scheduler.ask(call) for call in calls]

    return run_virtually(main())


def told(found: Iterable[Outcome]) -> list[object]:
    """All of an outcome that a record is made from, but how it came."""
    return [(one.call, one.status, one.reply, one.failure, one.key) for one in found]


def journal(folder: Path, found: Sequence[Outcome]) -> Path:
    """A run's folder that names these calls: some one by one, some as a turn's."""
    folder.mkdir()
    rows: dict[str, list[bytes]] = {"records.jsonl": [], "failures.jsonl": []}
    for place, one in enumerate(found):
        line = {"id": str(place), "keys": [one.key, one.key]} if place % 2 else {"id": str(place), "key": one.key}
        name = "records.jsonl" if one.failure is None else "failures.jsonl"
        rows[name].append(sealed(orjson.dumps(line)))
    for name, lines in rows.items():
        (folder / name).write_bytes(b"".join(lines))
    return folder


def packed(cache_folder: Path, run: Path, path: Path, until: float | None = None) -> SnapshotCounts:
    cache = Cache(cache_folder, read_only=True)
    try:
        return pack(cache, keys_of(run), path, until=until)
    finally:
        cache.close()
