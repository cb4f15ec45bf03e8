"""`millstream demo`: a full grid, small ones and conversations against simulated providers, on loopback.

Owns the run file it writes and the process of the simulation, which ends with this one in every case. The run is that
of `millstream run FILE`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ....configuration.declared_options import flag
from ....configuration.errors import RESUMABLE
from ....configuration.options import with_sending
from ....configuration.values import Text, WholeNumber
from ....format import command_text
from ...terminal.output import note

HELP = "see it work: both benchmarks against a simulated outside on this machine; needs no API key"
EXAMPLES = (
    "demo",
    "demo --limit 1",
)
QUICK = 2
START_S = 60.0
STOP_S = 5.0
CONCURRENCY = 256
# Far above what one process sends: quotas are kept, at their usual cost, but delay nothing.
RPM = 3_000_000
TPM = 3_000_000_000
# With this many hosts, the pause of a second between two pages of one delays nothing.
WEB = ("--web", "--hosts", "240")

_RUN_FILE = """\
# Written by the demo. The same again, while all of it listens there: millstream run {path}

[run]
out = "."
# Whatever is stored is taken, pages that gave nothing among it, and only what is missing is sent.
mode = "replay"
allow_host = ["*.sim.test=127.0.0.1:{web_port}"]

[[run.millstone]]
name = "open"
model = "sim/open"
dataset = {dataset}
{limit}
[[run.millstone]]
name = "controversial"
model = ["sim/stubborn", "sim/contrary", "sim/refusing"]
dataset = {dataset}
issues = "controversial"
{limit}
[[run.chameleon]]
name = "conversations"
model = ["sim/steady", "sim/open", "sim/contrary"]
judge = "sim/judge"
search = "searxng"
temperature = 0
window = 128_000
{conversations}
# The names stand for the addresses in keys of calls, so that other ports are the same provider and search engine.
[providers.sim]
base_url = "http://127.0.0.1:{port}/v1"
identity = "sim"

[searches.searxng]
base_url = "http://127.0.0.1:{web_port}"
identity = "sim"
"""
_LANE = """
[lanes."{model}"]
rpm = {rpm}
tpm = {tpm}
concurrency = {concurrency}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=flag(Text("a folder")),
        default="runs",
        metavar="DIR",
        help="where run folders go (default: runs)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="limit", action="store_const", const=QUICK, help=f"a short look: the same as --limit {QUICK}"
    )
    size.add_argument(
        "--limit",
        type=flag(WholeNumber("issues", 1)),
        metavar="N",
        help="only N issues of each grid, and N short conversations",
    )


def run(options: argparse.Namespace) -> int:
    from ....engine.fault import LocalFault
    from ....fixtures.full_size import ensure
    from ..command import parser_of
    from . import run as run_verb
    from .sim import full_size_folder

    runs, limit = Path(options.runs), options.limit
    try:
        dataset = ensure(full_size_folder()).absolute()
        folder = _new_folder(runs.absolute())
    except OSError as error:
        raise LocalFault(f"{error.filename or runs}: {error.strerror or error}: choose another --runs") from error
    with _outside() as ports:
        file = folder / "run.toml"
        file.write_text(_run_file(file, dataset, ports, limit), encoding="utf-8")
        note(_announced(folder, limit))
        code = run_verb.run(with_sending(parser_of("run", [str(file)]).parse_args([str(file)])), is_brief=True)
    if code >= RESUMABLE:
        sim = shlex.join(("millstream", "sim", "--full-size", *ports.flags, *WEB))
        note(f"demo: the simulated outside has ended too; to go on: {sim}, and beside it: {command_text('run', file)}")
    return code


def _new_folder(runs: Path) -> Path:
    """Creates and returns a folder named by this second. A second demo in the same second waits for the next one."""
    while True:
        folder = runs / datetime.now().strftime("%Y-%m-%d-%H%M%S")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not runs.is_dir():
                raise
            time.sleep(0.1)
        else:
            return folder


def _run_file(path: Path, dataset: Path, ports: Ports, limit: int | None) -> str:
    line = "" if limit is None else f"limit = {limit}\n"
    few = "" if limit is None else f"conversations = {limit}\nturns = 3\n"
    lanes = (
        _LANE.format(model=f"sim/{persona}", rpm=RPM, tpm=TPM, concurrency=CONCURRENCY)
        for persona in ("open", "stubborn", "contrary", "refusing", "steady", "judge")
    )
    quoted = json.dumps(str(dataset), ensure_ascii=False)
    places = {"path": path, "dataset": quoted, "port": ports.provider, "web_port": ports.web}
    return _RUN_FILE.format(**places, limit=line, conversations=few) + "".join(lanes)


def _announced(folder: Path, limit: int | None) -> str:
    what = (
        "the full grid of 105,930 prompts to sim/open, ten issues to sim/stubborn, contrary and refusing, then 24 "
        "conversations with sim/steady, open and contrary, which search and read a simulated web"
    )
    lasts = "a minute, and its reports; a part of it where the cache has the answers"
    if limit is not None:
        what = (
            f"{limit} of the issues to sim/open and as many to sim/stubborn, contrary and refusing, then {limit} short "
            f"{'conversation' if limit == 1 else 'conversations'} with sim/steady, open and contrary, which search and "
            f"read a simulated web"
        )
        lasts = "less than a minute"
    return f"demo: {what}; over HTTP on loopback ({lasts}); files: {folder}"


class Ports(NamedTuple):
    """The ports on which the simulated provider and web listen."""

    provider: int
    web: int

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--port", str(self.provider), "--web-port", str(self.web))


@contextmanager
def _outside() -> Iterator[Ports]:
    """Runs the simulated provider, web and search engine in a process of their own while the block lasts; gives their
    ports.

    Its standard input is a pipe of ours that is never written to: it closes when we end, a kill included. It is no
    member of our process group, so that Ctrl-C stops us alone and calls in flight are still answered.
    """
    with tempfile.TemporaryDirectory(prefix="millstream-demo-") as folder:
        port_file, web_port_file = Path(folder) / "port", Path(folder) / "web-port"
        python = [sys.executable, *(["-P"] if sys.flags.safe_path else [])]
        sim = ["-m", "millstream", "sim", "--full-size", "--until-eof", "--port", "0", "--port-file", str(port_file)]
        with subprocess.Popen(
            [*python, *sim, *WEB, "--web-port-file", str(web_port_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                # The provider listens last.
                provider = _port_of(process, port_file)
                yield Ports(provider, _port_of(process, web_port_file))
            finally:
                _end(process)


def _port_of(process: subprocess.Popen[bytes], port_file: Path) -> int:
    from ....engine.fault import LocalFault

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if port_file.exists():
            return int(port_file.read_text())
        if process.poll() is not None:
            assert process.stderr is not None
            lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise LocalFault(f"the simulated outside ended at once: {lines[-1] if lines else process.returncode}")
        time.sleep(0.02)
    raise LocalFault(f"the simulated outside did not listen within {START_S:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    for ask in (process.terminate, process.kill):
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            ask()
        else:
            return
