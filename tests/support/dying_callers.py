"""Processes that ask calls and are killed, as tests/support/dying_caller.py is told."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import dying_caller
from chat_server import ChatServer
from command_line import environment


async def started(server: ChatServer, folder: Path, place: str, count: int, concurrency: int) -> Process:
    """A process that asks and dies."""
    program = str(dying_caller.__file__)
    paths = [path for path in sys.path if path]
    variables = {**environment(folder), "PYTHONPATH": ":".join(paths)}
    command = [sys.executable, program, server.base_url, str(folder), place, str(count), str(concurrency)]
    return await asyncio.create_subprocess_exec(*command, cwd=folder, env=variables, stderr=PIPE)


async def killed(process: Process) -> None:
    """Waits for its end, which must be that by SIGKILL."""
    _, told = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == -signal.SIGKILL, told.decode()
