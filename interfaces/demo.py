"""The demo behind `make run`: a full grid and small ones against the simulated provider, on loopback.

Owns the run file it writes and the provider's process, which ends with this one however that ends. The run itself is
what `millstream run FILE` does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from ..engine.fault import LocalFault
from . import command
from .output import note
from .refusal import LOCAL_FAULT, RESUMABLE

START_S = 60.0
STOP_S = 5.0
CONCURRENCY = 256
# Far above what one process sends, so that quotas are kept and cost what they cost, but hold nothing up.
RPM = 3_000_000
TPM = 3_000_000_000

_RUN_FILE = """\
# Written by the demo. The same again, while a provider listens there: millstream run {path}

[run]
out = "."

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
# The name stands for the address in keys of calls, so that another port is the same provider.
[providers.sim]
base_url = "{base_url}"
identity = "sim"
"""
_LANE = """
[lanes."{model}"]
rpm = {rpm}
tpm = {tpm}
concurrency = {concurrency}
"""


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        return _demonstrate(options.runs, options.limit)
    except LocalFault as fault:
        note(f"demo: {fault}")
        return LOCAL_FAULT
    except KeyboardInterrupt:
        note("demo: interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m millstream.interfaces.demo",
        description="Run the full grid of one simulated model and ten issues of three more, on loopback.",
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="where run folders go (default: %(default)s)"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N issues of each run, for a short look")
    return parser


def _demonstrate(runs: Path, limit: int | None) -> int:
    from ..fixtures.full_size import ensure
    from .verbs.sim import full_size_folder

    try:
        dataset = ensure(full_size_folder()).absolute()
        folder = _new_folder(runs.absolute())
    except OSError as error:
        raise LocalFault(f"{error.filename or runs}: {error.strerror or error}: choose another --runs") from error
    with _provider() as port:
        file = folder / "run.toml"
        file.write_text(_run_file(file, dataset, f"http://127.0.0.1:{port}/v1", limit), encoding="utf-8")
        note(_announced(folder, limit))
        code = command.main(["run", str(file)])
    if code >= RESUMABLE:
        sim = f"millstream sim --full-size --port {port}"
        note(f"demo: the simulated provider has ended too; to go on: {sim}, and beside it: millstream run {file}")
    return code


def _new_folder(runs: Path) -> Path:
    """A folder of this second; a second demo in the same second waits for the next."""
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


def _run_file(path: Path, dataset: Path, base_url: str, limit: int | None) -> str:
    told = "" if limit is None else f"limit = {limit}\n"
    lanes = (
        _LANE.format(model=f"sim/{persona}", rpm=RPM, tpm=TPM, concurrency=CONCURRENCY)
        for persona in ("open", "stubborn", "contrary", "refusing")
    )
    quoted = json.dumps(str(dataset), ensure_ascii=False)
    return _RUN_FILE.format(path=path, dataset=quoted, base_url=base_url, limit=told) + "".join(lanes)


def _announced(folder: Path, limit: int | None) -> str:
    what = "the full grid of 105,930 prompts to sim/open, then ten issues to sim/stubborn, contrary and refusing"
    lasts = "half a minute, and its reports; a few seconds where the cache has the answers"
    if limit is not None:
        what = f"{limit} of the issues to sim/open, then as many to sim/stubborn, contrary and refusing"
        lasts = "a part of a minute"
    return f"demo: {what}, over HTTP on loopback ({lasts}); files: {folder}"


@contextmanager
def _provider() -> Iterator[int]:
    """The simulated provider in a process of its own, while the block lasts; its port.

    Its standard input is a pipe of ours that nobody writes to: it closes when we end, a kill included. It is no member
    of our process group, so that Ctrl-C stops us alone and what is in flight is still answered.
    """
    with tempfile.TemporaryDirectory(prefix="millstream-demo-") as folder:
        port_file = Path(folder) / "port"
        python = [sys.executable, *(["-P"] if sys.flags.safe_path else [])]
        sim = ["-m", "millstream", "sim", "--full-size", "--until-eof", "--port", "0", "--port-file", str(port_file)]
        with subprocess.Popen(
            [*python, *sim],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                yield _port_of(process, port_file)
            finally:
                _end(process)


def _port_of(process: subprocess.Popen[bytes], port_file: Path) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if port_file.exists():
            return int(port_file.read_text())
        if process.poll() is not None:
            assert process.stderr is not None
            said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise LocalFault(f"the simulated provider ended at once: {said[-1] if said else process.returncode}")
        time.sleep(0.02)
    raise LocalFault(f"the simulated provider did not listen within {START_S:g} s")


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


if __name__ == "__main__":
    sys.exit(main())
