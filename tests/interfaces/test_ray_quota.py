"""Workers of a Ray cluster that have a cache folder each keep one quota, also when its owner is killed; the provider's
own log is the judge."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
from chat_server import MODEL, ChatServer, settings_for
from msgspec import structs
from ray_nodes import PATIENCE
from scripted import worst_minute
from torture import SEED, record, times

import millstream as ms
from millstream.engine.shared.quota import WINDOW_S
from millstream.wiring import fleet, fleet_quota
from millstream.wiring.settings import Settings

ray: Any = pytest.importorskip("ray")
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(900 + 300 * times(0, 9))]
RPM, COUNT, KILLS = 300, 240, times(1, 10)
HELD_S = WINDOW_S + fleet_quota._SURE_S


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray on this machine, started again if it takes too long: its own bounds are short for a busy machine."""
    for name, value in (PATIENCE | {"RAY_USAGE_STATS_ENABLED": "0", "LAB_KEY": "sk-lab-0123456789"}).items():
        monkeypatch.setenv(name, value)
    for left in reversed(range(3)):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
            break
        except Exception:
            ray.shutdown()
            if not left:
                raise
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_workers_of_several_machines_keep_one_quota_also_when_its_owner_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, chance = fleet.settings_of_one, random.Random(SEED)
    folders: list[Path] = []

    def with_a_folder_of_its_own(settings: Settings, *more: Any) -> Settings:
        folders.append(tmp_path / f"machine {len(folders)}")
        return structs.replace(plain(settings, *more), cache=folders[-1])

    monkeypatch.setattr(fleet, "settings_of_one", with_a_folder_of_its_own)
    nodes = ray.nodes
    monkeypatch.setattr(ray, "nodes", lambda: [*nodes(), {**nodes()[0], "NodeManagerHostname": "another"}])

    async def main() -> tuple[list[float], list[float]]:
        loop, server, killed = asyncio.get_running_loop(), ChatServer(), []
        lane = ms.Lane(MODEL, concurrency=32, rpm=RPM)
        more = {"cluster": "local", "workers": 2, "policy": ms.RetryPolicy()}
        async with server:
            settings = settings_for(server.base_url, tmp_path / "driver", lane, **more)
            async with ms.Engine(settings=settings) as engine:
                for number in range(KILLS):
                    mark, outcomes = chance.randrange(COUNT // 3, COUNT * 2 // 3), 0
                    async for outcome in engine.run(ms.Call(MODEL, f"prompt {number} {each}") for each in range(COUNT)):
                        assert outcome.status == "ok" and outcome.attempts == 1
                        outcomes += 1
                        if outcomes == mark:
                            ray.kill(ray.get_actor(fleet_quota._NAME, fleet_quota._NAMESPACE))
                            killed.append(loop.time())
                    assert outcomes == COUNT
        return sorted(asked.at for asked in server.asked), killed

    sent, killed = asyncio.run(asyncio.wait_for(main(), 500 + 300 * KILLS))
    assert len(folders) == 2 and all(folder.is_dir() for folder in folders)
    assert "calls under a quota wait" in caplog.text
    fullest = worst_minute([(at, 1) for at in sent])
    assert len(sent) == COUNT * KILLS and fullest <= RPM
    # Two quotas would be used in half the time.
    assert sent[COUNT // 3 - 20] - sent[0] > 0.95 * 60 * (COUNT // 3 - 20) / RPM
    # The next owner grants nothing that the first may have granted already, and then all of it.
    for at, until in zip(killed, [*killed[1:], inf], strict=True):
        assert not [each for each in sent if at + 4 < each < at + HELD_S - 1]
        rest = [each for each in sent if at + HELD_S - 1 < each < until]
        assert rest and rest[0] < at + HELD_S + 60  # a busy machine starts the next owner's process late
    seen = f"the quota's owner killed in a run: no call for {HELD_S:.0f} s, the fullest minute had {fullest} of {RPM}"
    record("8", KILLS, KILLS, seen, f"{SEED}")
