"""One quota for processes without a common folder, over a real server: the simulated provider's log is the judge."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from bisect import bisect_left
from pathlib import Path

import pytest
from shared_server import KEEPING, REDIS, VALKEY, SharedServer
from torture import IS_LONG, record, times

from millstream.fixtures.provider import AccountQuota, ModelProvider, Options

# Engines in processes of their own.
pytestmark = pytest.mark.process

RPM = 240
# Too short for a whole minute, but in `make torture`.
SHARED_S = float(times(8, 150))

SENDER = """
import asyncio, itertools, sys
from pathlib import Path
from millstream import Call, Engine, Lane, Settings
from millstream.engine.server_address import address_of

async def main(base_url, folder, name, rpm, seconds, server, window_s):
    lane = Lane("sim/open", rpm=float(rpm) or None, concurrency=16)
    settings = Settings(
        lanes=(lane,), base_url=base_url, cache=Path(folder), server=address_of(server), environment={}
    )
    async with Engine(settings=settings) as engine:
        # The server of a test has just been started.
        engine._shared.quota.window_s = float(window_s)
        print("ready", flush=True)
        sys.stdin.readline()
        calls = (Call("sim/open", f"{name} {number}") for number in itertools.count())
        try:
            async with asyncio.timeout(float(seconds)):
                async for outcome in engine.run(calls):
                    assert outcome.status == "ok", outcome
        except TimeoutError:
            pass

asyncio.run(main(*sys.argv[1:]))
"""


class Fleet:
    """Processes that begin to send at once, each with a folder of its own."""

    def __init__(self, base_url: str, folder: Path, server: SharedServer, *, rpm: int, window_s: float) -> None:
        self._arguments = base_url, folder, server, rpm, window_s
        self.processes: list[asyncio.subprocess.Process] = []

    async def start(self, count: int, seconds: float) -> None:
        base_url, folder, server, rpm, window_s = self._arguments
        for number in range(len(self.processes), len(self.processes) + count):
            words = base_url, folder / str(number), f"process {number}", rpm, seconds, server.address, window_s
            self.processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", SENDER, *map(str, words)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
            )
        begun = self.processes[-count:]
        for process in begun:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        for process in begun:
            assert process.stdin is not None
            process.stdin.write(b"go\n")

    async def end(self) -> list[str]:
        """Waits for all, and returns what they logged."""
        logs = []
        for process in self.processes:
            _, log = await process.communicate()
            assert process.returncode in (0, -signal.SIGKILL), log.decode()
            logs.append(log.decode())
        return logs


def fullest_minute(arrivals: list[float]) -> int:
    return max(bisect_left(arrivals, at + 60.0) - number for number, at in enumerate(arrivals))


@pytest.mark.timeout(120 + 2 * SHARED_S)
@pytest.mark.parametrize(("count", "kind"), [(2, REDIS), (4, VALKEY)])
def test_processes_of_several_machines_stay_under_one_quota_also_when_one_is_killed_and_one_joins(
    count: int, kind: str, tmp_path: Path
) -> None:
    async def scenario() -> tuple[list[float], float]:
        async with ModelProvider() as provider:
            with SharedServer(tmp_path / "server", kind=kind) as server:
                fleet = Fleet(provider.base_url, tmp_path, server, rpm=RPM, window_s=0.0)
                await fleet.start(count, SHARED_S)
                await asyncio.sleep(SHARED_S / 4)
                fleet.processes[0].kill()
                killed_at = time.monotonic()
                await fleet.start(1, SHARED_S * 3 / 4)
                await fleet.end()
                return sorted(row.at for row in provider.log.rows()), killed_at

    arrivals, killed_at = asyncio.run(asyncio.wait_for(scenario(), 100 + SHARED_S))
    # 99.5% of the quota spread over 60.5 s, and its burst at once, which a block of a second may delay.
    spacing, burst = 60.5 / (0.995 * RPM), 1 + RPM / 200
    assert len(arrivals) <= burst + (arrivals[-1] - arrivals[0] + 1.5) / spacing
    assert fullest_minute(arrivals) <= RPM
    rest = [at for at in arrivals if at > killed_at + 1]
    assert len(rest) >= (0.95 if IS_LONG else 0.7) * (arrivals[-1] - killed_at - 1) / spacing
    if IS_LONG:
        assert fullest_minute(arrivals) >= 0.95 * RPM
    worst = (
        f"{count} machines, one killed, one new: the fullest minute had {fullest_minute(arrivals)} of {RPM} requests"
    )
    record("8", len(arrivals), len(arrivals), worst)


@pytest.mark.timeout(180 + 2 * SHARED_S)
@pytest.mark.parametrize("options", [(), KEEPING], ids=["empty", "kept"])
def test_a_server_that_is_killed_and_started_again_lets_no_run_hang_and_no_minute_hold_more(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    """In the long run with the true window, here with one of five seconds."""
    window_s, seconds = (64.0, 200.0) if IS_LONG else (5.0, 18.0)

    async def scenario() -> tuple[list[float], float, list[str]]:
        async with ModelProvider() as provider:
            with SharedServer(tmp_path / "server", *options) as server:
                await asyncio.sleep(window_s)
                fleet = Fleet(provider.base_url, tmp_path, server, rpm=RPM, window_s=window_s)
                await fleet.start(2, seconds)
                await asyncio.sleep(seconds / 4)
                server.kill()
                await asyncio.sleep(0.5)
                server.start()
                started_at = time.monotonic()
                logs = await fleet.end()
                return sorted(row.at for row in provider.log.rows()), started_at, logs

    arrivals, started_at, logs = asyncio.run(asyncio.wait_for(scenario(), 150 + seconds))
    assert fullest_minute(arrivals) <= RPM
    # What was granted before may still be sent; then nothing for a window, then everything again.
    assert not [at for at in arrivals if started_at + 0.6 < at < started_at + window_s - 1.1]
    resumed = started_at + window_s + 2
    late = [at for at in arrivals if at > resumed]
    assert len(late) >= 0.7 * (arrivals[-1] - resumed) * RPM / 61.5
    for log in logs:
        assert log.count("may have forgotten what was sent before: calls under a quota wait") == 1


@pytest.mark.timeout(120)
def test_a_quota_that_one_machine_learned_holds_for_the_others(tmp_path: Path) -> None:
    """No quota is declared; the provider enforces one and says so. Nobody is refused."""
    options = Options(quota=AccountQuota(requests=120))

    async def scenario() -> list[int]:
        async with ModelProvider(options) as provider:
            with SharedServer(tmp_path / "server") as server:
                fleet = Fleet(provider.base_url, tmp_path, server, rpm=0, window_s=0.0)
                await fleet.start(1, 2)
                await fleet.end()
                await fleet.start(2, 3)
                await fleet.end()
                return [row.status for row in provider.log.rows()]

    statuses = asyncio.run(asyncio.wait_for(scenario(), 100))
    assert set(statuses[30:]) == {200}
