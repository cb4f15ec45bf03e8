"""Runs that are stopped from outside: signals, kills, a second process, a reader that goes away."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from command_line import SMALL, SMALL_PROMPTS, Provider, finish, ids_of, run_command, start
from torture import SEED, times

pytestmark = pytest.mark.needs_benchmark("millstone")

WIDE = ("--limit", "2", "--templates", "2", "--trials", "3", "--no-progress")
WIDE_PROMPTS = 2 * 2 * 11 * 3
CONCURRENCY = 4


def command(provider: Provider, *more: str, size: tuple[str, ...] = WIDE) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run")
    return (
        "run",
        "millstone",
        "--no-report",
        "--model",
        "sim/open",
        *size,
        *where,
        "--concurrency",
        str(CONCURRENCY),
        *more,
    )


# After how many calls the signal comes.
@pytest.mark.parametrize("instant", [12, *random.Random(SEED).choices(range(1, 100), k=times(0, 99))])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_drains_and_claims_only_what_the_journal_holds(
    provider: Provider, tmp_path: Path, number: signal.Signals, code: int, instant: int
) -> None:
    provider.set_faults("slow_body=0.2")
    process = start(tmp_path, *command(provider, "--json"))
    provider.await_calls(instant)
    process.send_signal(number)
    done = finish(process)
    assert done.code == code, done.err
    (run,) = json.loads(done.out)["runs"]
    assert run["answered"] == len(ids_of(tmp_path / "run")) > 0
    assert run["answered"] + run["pending"] == WIDE_PROMPTS
    assert run["stops"][0]["reason"] == "interrupted"
    # Drained: whatever was sent is on disk.
    assert provider.calls() == run["answered"]
    provider.set_faults()
    assert run_command(tmp_path, *command(provider)).code == 0
    assert provider.calls() == WIDE_PROMPTS
    assert len(set(ids_of(tmp_path / "run"))) == len(ids_of(tmp_path / "run")) == WIDE_PROMPTS


def test_a_run_whose_cache_can_not_be_opened_was_not_killed(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run_command(tmp_path, *command(provider), "--cache", "file")
    assert refused.code == 5 and "can't be opened" in refused.err
    done = run_command(tmp_path, *command(provider))
    assert done.code == 0, done.err
    assert "killed before" not in done.out


def test_no_prompt_is_received_more_often_than_the_grid_holds_it(provider: Provider, tmp_path: Path) -> None:
    from millstream.bench.millstone.dataset import load, select
    from millstream.bench.millstone.grid import Grid
    from millstream.bench.millstone.options import GridOptions
    from millstream.bench.millstone.work import SAMPLE

    assert run_command(tmp_path, *command(provider)).code == 0
    grid = Grid(select(load(SAMPLE), limit=2), GridOptions(templates=2, trials=3))
    wanted = Counter(sha256(item.prompt.encode()).hexdigest() for item in grid)
    assert provider.received() == wanted


def test_a_reader_that_goes_away_is_no_error(provider: Provider, tmp_path: Path) -> None:
    process = start(tmp_path, *command(provider, "--json", size=(*SMALL, "--no-progress")))
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    code, err = process.wait(40), process.stderr.read()
    process.stderr.close()
    assert code == 0
    assert "Broken" not in err and "Traceback" not in err
    assert len(ids_of(tmp_path / "run")) == SMALL_PROMPTS


# As a signal does while the program still loads its command line.
INTERRUPTED_LOADING = """
import sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "millstream.interfaces.cli.command":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from millstream.__main__ import main
sys.exit(main())
"""


def test_a_signal_while_the_program_loads_ends_it_in_a_line() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", INTERRUPTED_LOADING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "millstream: interrupted\n")
