"""Runs the snippets of a page of docs, as a reader would paste them.

The rules, for whoever adds a section:
- A section is what stands under a `## ` heading; it is one test. Its blocks run in their order in a folder of its own
  (which is its home too, so the cache begins empty), against a simulated provider. A section that needs no blocks of
  others needs no order among sections.
- `python` is run with python, `js` with node as a module (skipped with its section where there is no node), `sh` with
  `sh -eu`. What an `sh` block exports, later blocks of the section have too. A block fails on an exit code other than
  0. An exit code that is meant otherwise is caught in the block: `millstream … || test $? = 3`.
- A block right behind a line that holds nothing but a file's name (`rows.py` in backquotes, and a colon) is written to
  that file and not run. `toml`, `yaml`, `ini`, `jsonl`, `json` and `csv` are always written so. Any other language
  (`console`) is shown only.
- A `text` block right behind a block that runs is all that this prints to its standard output. In it `…` stands for
  anything within a line, and a line that is `…` alone for any lines; any number of spaces is as good as another.
- What an `sh` block starts with `&` lives until the section ends. Port 8400 is another, free one in each section; where
  the block that starts something names it, the next block waits until it answers. Names of models stand for those of
  the simulated provider, which has no such ones; OPENAI_BASE_URL and OPENAI_API_KEY lead to it.
- `pip install FOLDER` installs into the section's own folder, without a network.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from command_line import Provider

ROOT = Path(__file__).parent.parent.parent
RUN = ("python", "js", "sh")
WRITTEN = ("toml", "yaml", "ini", "jsonl", "json", "csv")
PORT = "8400"
SIMULATED: Mapping[str, str] = MappingProxyType({"gpt-6-luna": "open"})
WITHIN_S = 100.0
# Of packages that node's snippets import.
NODE_MODULES = ROOT / "tests" / "mock" / "node_modules"

_BLOCK = re.compile(
    r"(?:^`([\w./-]+\.\w+)`:\n+)?^```(\w+)\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    language: str
    text: str
    expected: str | None
    file: str | None


def sections_of(page: str) -> dict[str, list[Block]]:
    """Their blocks that are run or written, by their headings."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        blocks = [_block(*match.groups()) for match in _BLOCK.finditer(text)]
        found[title] = [block for block in blocks if block.language in (*RUN, *WRITTEN)]
    return found


def _block(file: str | None, language: str, text: str, expected: str | None) -> Block:
    if language in WRITTEN and file is None:
        first = text.partition("\n")[0]
        raise AssertionError(f"a line with the file's name must stand before the block in {language} with {first!r}")
    return Block(language, text, expected, file)


def is_as_told(expected: str, printed: str) -> bool:
    lines = [
        r"(?:.*\n)*" if line == "…" else ".*".join(map(_escaped, line.split("…"))) + r"\n"
        for line in expected.splitlines()
    ]
    return re.fullmatch("".join(lines), printed if printed.endswith("\n") else f"{printed}\n") is not None


def _escaped(text: str) -> str:
    """The pattern of a text. Columns are as wide as the names of models in them."""
    return re.sub(r"(?:\\ )+", " +", re.escape(text))


class Reader:
    """Somebody who pastes one section's blocks into a shell."""

    def __init__(self, home: Path, provider: Provider, simulated: Mapping[str, str] = SIMULATED) -> None:
        self._home = home
        self._simulated = simulated
        self._number = 0
        self._port = free_port()
        self._is_awaited = False
        self._started: list[int] = []
        site = home / ".site"
        paths = [str(site)]
        paths += [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        self._variables = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(paths),
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "sk-for-tests-of-documents",
            "PIP_TARGET": str(site),
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            # pip's own way to say yes.
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def take(self, block: Block) -> None:
        self._number += 1
        text = self._translated(block.text)
        if block.file is not None:
            path = self._home / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        self._await_port()
        printed = self._run(block.language, text)
        self._is_awaited = block.language == "sh" and re.search(r"&\s*$", text, re.MULTILINE) is not None
        self._is_awaited &= str(self._port) in text
        if block.expected is not None:
            expected = self._translated(block.expected)
            if not is_as_told(expected, printed):
                raise AssertionError(f"expected\n{expected}\ncame\n{printed}")

    def _translated(self, text: str) -> str:
        for model, simulated in self._simulated.items():
            text = text.replace(model, simulated)
        return text.replace(PORT, str(self._port))

    def end(self) -> None:
        for group in self._started:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(group, number)
                except ProcessLookupError:
                    break
                time.sleep(0.3)

    def _run(self, language: str, text: str) -> str:
        own = self._home / f".block-{self._number}"
        own.mkdir()
        if language == "sh":
            # What is exported when the block ends is what later ones begin with.
            script = f"trap 'code=$?; env -0 > {own}/variables; exit $code' EXIT\n{text}"
            command = ["sh", "-euc", script]
        elif language == "python":
            (own / "snippet.py").write_text(text)
            command = [sys.executable, str(own / "snippet.py")]
        else:
            self._link_node_modules()
            (self._home / f"snippet-{self._number}.mjs").write_text(text)
            command = ["node", f"snippet-{self._number}.mjs"]
        # Files, since what is left running holds a pipe open.
        with (own / "out").open("wb") as out, (own / "err").open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=self._home,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self._started.append(process.pid)
            code = process.wait(WITHIN_S)
        printed, said = (own / "out").read_text("utf-8"), (own / "err").read_text("utf-8")
        if code != 0 or "Traceback" in said:
            raise AssertionError(f"exit code {code} of\n{text}\n{printed}\n{said}")
        if language == "sh":
            pairs = (pair.partition("=") for pair in (own / "variables").read_text().split("\0") if pair)
            self._variables = {name: value for name, _, value in pairs}
        return printed

    def _await_port(self) -> None:
        deadline = time.monotonic() + 30
        while self._is_awaited:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "what the block before started does not answer"
                time.sleep(0.05)

    def _link_node_modules(self) -> None:
        if shutil.which("node") is None:
            pytest.skip("node is not installed")
        link = self._home / "node_modules"
        if NODE_MODULES.is_dir() and not link.exists():
            link.symlink_to(NODE_MODULES)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
