"""Thousands of lanes in one engine: time, descriptors, and a machine that allows few of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer, Visit, answer, http
from torture import IS_LONG, record

pytestmark = pytest.mark.process

# Another process, whose limits and descriptors are its own. Each lane is declared, and gets three calls.
ASKING = """
import asyncio, json, os, resource, sys, time
from collections import Counter
from pathlib import Path
import millstream as ms
from millstream.engine.collector import calm_collector
from millstream.providers.table import Provider

url, folder, count, files = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if files:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

async def main():
    settings = ms.Settings(
        lanes=tuple(ms.Lane(f"mylab/m{n}", rpm=600, concurrency=1) for n in range(count)),
        providers={"mylab": Provider(url, "KEY")},
        cache=folder,
        environment={"KEY": "sk-of-the-test"},
    )
    statuses = Counter()
    began = time.process_time()
    async with ms.Engine(settings=settings) as engine:
        async for outcome in engine.run(ms.Call(f"mylab/m{n % count}", f"{n}") for n in range(3 * count)):
            statuses[outcome.status] += 1
        seconds = time.process_time() - began
        for _ in range(20):  # idle connections are closed within eight seconds
            open_files = len(os.listdir("/proc/self/fd"))
            if open_files <= 1_000:
                break
            await asyncio.sleep(0.5)
    print(json.dumps({"statuses": statuses, "open": open_files, "seconds": seconds}))

with calm_collector():
    asyncio.run(main())
"""


async def answering(visit: Visit) -> None:
    while await visit.request() is not None:
        await visit.send(http(answer("yes")))


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    async with RawServer(answering) as server:
        yield server.base_url


async def asked(url: str, folder: Path, lanes: int, files: int = 0) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", ASKING, url, str(folder), str(lanes), str(files)), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    found: dict[str, Any] = json.loads(out)
    return found


def test_three_hundred_lanes_end_all_their_calls_where_few_files_may_be_open(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        async with serving() as url:
            return await asked(url, tmp_path, 300, files=400)

    assert asyncio.run(asyncio.wait_for(main(), 90))["statuses"] == {"ok": 900}


@pytest.mark.skipif(not IS_LONG, reason="a minute or more: make torture")
def test_ten_thousand_lanes_take_linear_time_and_at_most_a_descriptor_each(tmp_path: Path) -> None:
    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with serving() as url:
            few = await asked(url, tmp_path / "few", 1_000)
            return few, await asked(url, tmp_path / "many", 10_000)

    few, many = asyncio.run(asyncio.wait_for(main(), 900))
    growth = many["seconds"] / few["seconds"]
    record("10", 1, 1, f"10,000 lanes took {growth:.1f} times as long as 1,000, with {many['open']:,} open files")
    assert many["statuses"] == {"ok": 30_000}
    assert many["open"] <= 1_000 and few["open"] <= 1_000
    assert growth <= 15
