"""A scripted run in virtual time, and what its progress wrote when."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import cast

from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.lane import Lane
from millstream.engine.prices import Price
from millstream.engine.run import run_calls
from millstream.interfaces.terminal.progress import showing
from millstream.wiring.engine import Engine

MODEL = "script/m"


def idle_cpu() -> float:
    return 0.0


def lines_of(
    tmp_path: Path,
    lane: Lane,
    calls: int,
    provider: ScriptedProvider | None = None,
    *,
    total: int | None = None,
    already: int = 0,
    price: Price | None = None,
    cpu: Callable[[asyncio.AbstractEventLoop], float] | None = None,
) -> list[tuple[float, str]]:
    """Run `calls` calls in virtual time; the progress lines with the second at which each was written."""
    written: list[tuple[float, str]] = []

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            if text.strip():
                written.append((asyncio.get_running_loop().time(), text.strip()))
            return len(text)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        provider_or_default = provider or ScriptedProvider()
        async with engine_over({lane.model: provider_or_default}, tmp_path / "cache", lane, price=price) as bench:
            cpu_s = idle_cpu if cpu is None else lambda: cpu(loop)
            with showing(cast(Engine, bench), total or calls, already, stream=Log(), cpu_s=cpu_s):
                async for _ in run_calls(bench.scheduler, prompts(calls, lane.model)):
                    pass

    run_virtually(main())
    return written
