"""Limits of our own machine, met by a whole engine over HTTP."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from millstream.fixtures.provider import ModelProvider

# Opens files until a handful is left, asks, and lets go of them half a second later.
STARVED = """
import asyncio, os, resource, sys
from pathlib import Path
from millstream import Call, Engine, Lane, Settings
from millstream.engine.attempts.retry import RetryPolicy

async def main(base_url, folder):
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    settings = Settings(
        lanes=(Lane("sim/steady", concurrency=500),), base_url=base_url, cache=Path(folder), environment={},
        policy=RetryPolicy(attempts_max=1),
    )
    async with Engine(settings=settings) as engine:
        hoard = []
        try:
            while True:
                hoard.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for _ in range(4):
                os.close(hoard.pop())
        asyncio.get_running_loop().call_later(0.5, lambda: [os.close(one) for one in hoard])
        calls = (Call("sim/steady", f"prompt {number}") for number in range(100))
        outcomes = [outcome async for outcome in engine.run(calls)]
    waited = sum(outcome.attempts > 1 for outcome in outcomes)
    print(len(outcomes), {outcome.status for outcome in outcomes}, sum(o.maybe_billed for o in outcomes), waited > 0)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_running_out_of_file_descriptors_is_never_a_failure_of_an_item(host: str, tmp_path: Path) -> None:
    async def scenario() -> tuple[bytes, bytes, int]:
        async with ModelProvider() as provider:
            base_url = provider.base_url.replace("127.0.0.1", host)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", STARVED, base_url, str(tmp_path),
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            said, complained = await asyncio.wait_for(process.communicate(), 60)
            return said, complained, provider.log.total

    said, complained, received = asyncio.run(scenario())
    assert said.decode().strip() == "100 {'ok'} 0 True", complained.decode()
    assert received == 100
