"""A command in a process of its own that tells, after all it says, how much memory it needed at most."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from command_line import Done, environment

# What the system counts for a process begins with what its parent had; this begins with the program.
_PROGRAM = """
import sys
from millstream.interfaces.cli.command import main
code = main(sys.argv[1:])
print(open("/proc/self/status").read(), file=sys.stderr)
sys.exit(code)
"""


class Watched(NamedTuple):
    done: Done
    peak_mb: int


def run_watched(home: Path, *arguments: str, within_s: float = 60.0) -> Watched:
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, *arguments],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    peak = re.search(r"^VmHWM:\s+(\d+) kB", done.stderr, re.MULTILINE)
    assert peak is not None, done.stderr
    return Watched(Done(done.returncode, done.stdout, done.stderr), int(peak[1]) // 1024)
