"""Calls and programs that a provider of its own bills: what was answered and spent, and kills."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from billing_server import BillingServer
from command_line import environment

import millstream as ms

KINDS = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}


async def _asked(settings: ms.Settings, calls: Iterable[ms.Call]) -> tuple[list[ms.Outcome], float, float]:
    outcomes = []
    async with ms.Engine(settings=settings) as engine:
        try:
            async for outcome in engine.run(calls):
                outcomes.append(outcome)
        except ms.Stopped:
            pass
        budget = engine.budget
        return outcomes, budget.spent, budget.at_worst


def asked(settings: ms.Settings, calls: Iterable[ms.Call]) -> tuple[list[ms.Outcome], float, float]:
    return asyncio.run(_asked(settings, calls))


def run_and_kill(home: Path, command: list[str], server: BillingServer, after: int) -> None:
    """Kills the program once the provider has received so many more calls."""
    before = server.calls
    process = subprocess.Popen(command, cwd=home, env=environment(home), stderr=subprocess.PIPE, text=True)
    while process.poll() is None and server.calls < before + after:
        time.sleep(0.005)
    process.kill()
    process.communicate()
