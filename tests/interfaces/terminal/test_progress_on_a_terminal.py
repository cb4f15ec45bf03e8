"""Progress on a real terminal, in a process of its own: it is left as it was found."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import pieces, terminal

ANSI = re.compile(r"\x1b")

PROGRAM = """
import asyncio, sys
from pathlib import Path
from millstream.engine.call import Call
from millstream.engine.run import run_calls
from millstream.interfaces.terminal.progress import showing
from scripted import ScriptedProvider, engine_over, prompts

async def main(folder, end):
    async with engine_over({"script/m": ScriptedProvider(latency_s=0.02)}, Path(folder)) as bench:
        with showing(bench, 400, 0, stream=sys.stderr):
            number = 0
            async for outcome in run_calls(bench.scheduler, prompts(400)):
                number += 1
                if number == 100:
                    print("ready", flush=True)
                if number == 150 and end == "raise":
                    raise RuntimeError("on purpose")
                if number == 150 and end == "print":
                    print("said beside", file=sys.stderr)
                if number == 150 and end == "wait":
                    await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def on_a_terminal(
    folder: Path, end: str, environment: dict[str, str], kill: signal.Signals | None = None
) -> tuple[int, str]:
    """What a terminal of 40 columns gets from the program; exit code and text."""
    ours, theirs = terminal(40, 20)
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    support = Path(__file__).parent.parent / "support"
    paths = os.pathsep.join((str(support), *sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), end],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        # Whoever started the tests, as by nohup, may have ignored it for all of them.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        env={**inherited, "TERM": "xterm-256color", "COLUMNS": "40", "LINES": "20", "PYTHONPATH": paths, **environment},
    )
    os.close(theirs)
    if kill is not None:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(kill)
    got = b"".join(pieces(ours))
    code = process.wait(timeout=30)
    if process.stdout is not None:
        process.stdout.close()
    return code, got.decode()


def is_cursor_shown(text: str) -> bool:
    return text.rfind("\x1b[?25h") >= text.rfind("\x1b[?25l")


def test_a_terminal_ends_with_the_whole_on_it_and_its_cursor_shown(tmp_path: Path) -> None:
    code, text = on_a_terminal(tmp_path, "whole", {})
    assert code == 0
    assert "400 of 400" in text and "100%" in text
    assert "\x1b[1;32m" in text or "\x1b[32m" in text
    assert is_cursor_shown(text) and text.endswith(("\n", "\x1b[?25h"))


def test_an_exception_leaves_the_terminal_clean(tmp_path: Path) -> None:
    # Newer Pythons colour the traceback itself.
    code, text = on_a_terminal(tmp_path, "raise", {"PYTHON_COLORS": "0"})
    assert code == 1
    before, _, after = text.partition("Traceback")
    assert is_cursor_shown(before)
    assert "on purpose" in after and not ANSI.search(after)


@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_killed_process_leaves_the_cursor_shown(tmp_path: Path, kill: signal.Signals) -> None:
    code, text = on_a_terminal(tmp_path, "wait", {}, kill)
    assert code == -kill
    assert "\x1b[" in text
    assert is_cursor_shown(text)


def test_what_others_print_to_stderr_stays_readable(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "print", {})
    assert "said beside\r\n" in text


def test_no_color_means_no_colour(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "whole", {"NO_COLOR": "1"})
    assert "400 of 400" in text
    assert re.findall(r"\x1b\[[\d;]*3[0-9][\d;]*m|\x1b\[[\d;]*9[0-7]m", text) == []


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "whole", {"TERM": "dumb"})
    assert not ANSI.search(text)
    assert "400 of 400 (100%) | in 0:0" in text


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    code, text = on_a_terminal(tmp_path, "whole", {"PYTHONIOENCODING": "ascii"})
    assert code == 0
    assert "400 of 400" in text and text.isascii()
