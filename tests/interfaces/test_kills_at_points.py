"""Promise 1 at every point between two changes of files: a command killed there, and again while it mends, ends as one
that was not.

The points are those of a recorded run, so a new write is a new point. Some of them here, all of them in `make torture`.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from batches import write_sound
from command_line import SMALL, Done, finish, lines_of, run_command, scores_of, start
from file_writes import FileWrite, KillPoint, WatchedFolder
from simulated_outside import Outside
from torture import IS_LONG, SEED, record

pytestmark = [pytest.mark.needs_benchmark("millstone", "chameleon", "sycon", "task"), pytest.mark.timeout(3600)]

CONCURRENCY = 2
POINTS = 2
CACHED = ("--cache", "cache", "--no-progress")
SENT = (*CACHED, "--concurrency", str(CONCURRENCY))
MILLSTONE = ("run", "millstone", "--model", "sim/open", *SMALL, *SENT, "--out", "run")
TALK = ("run", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--conversations", "1", "--turns", "2")
SYCON = ("run", "sycon", "--model", "sim/open", "--judge", "sim/judge", "--setting", "ethical", "--limit", "2")
GRADED = """import millstream as ms

grade = ms.judge("sim/grader", "Is the answer to {country} right?", grades={"yes": 1, "no": 0})
task = ms.Task(data=[{"country": f"country {n}"} for n in range(6)], prompt="What of {country}?", score=grade)
"""
SEVERAL = """import millstream as ms

class Talk(ms.Benchmark):
    data = [{"country": f"country {n}"} for n in range(4)]
    models = {"reader": "sim/judge"}

    async def run(self, item, ask):
        talk = [ms.user(f"What of {item['country']}?")]
        for doubt in ("Are you sure?", "No."):
            talk += [await ask(talk), ms.user(doubt)]
        return (await ask(talk[:-1], model="reader")).text

    def score(self, item, result):
        return len(result)
"""
PRICED = '[prices."sim/open"]\ninput = 20.0\noutput = 20.0\n'


class Scenario(NamedTuple):
    """A command, after those that prepare its folder. `kept` are the files that it makes, as in a run never killed;
    `code` is how it ends, and `after` how it may end once it was killed; `lanes` are the models that are asked."""

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    kept: tuple[str, ...] = ("run",)
    code: int = 0
    after: int = 0
    lanes: int = 1


SCENARIOS = {
    "MillStone": Scenario((*MILLSTONE, "--no-report")),
    "conversations": Scenario((*TALK, *SENT, "--pages", "1", "--no-report", "--out", "run"), code=3, lanes=2),
    "batch": Scenario(("batch", "in.jsonl", "out.jsonl", *SENT), kept=("out.jsonl",)),
    "report": Scenario((*MILLSTONE,), kept=("run", "run/report.html")),
    # The simulated judge answers with none of the words that it was asked for: nothing is measured.
    "SYCON": Scenario((*SYCON, *SENT, "--no-report", "--out", "run"), code=3, lanes=2),
    "task": Scenario(("run", "graded.py", "--model", "sim/open", *SENT, "--no-report", "--out", "run"), lanes=2),
    "several steps": Scenario(("run", "talk.py", "--model", "sim/open", *SENT, "--no-report", "--out", "run"), lanes=2),
    "judge": Scenario(
        ("judge", "run", "--judge", "sim/steady", *SENT),
        code=3,
        before=((*SYCON, *SENT, "--no-report", "--out", "run"),),
    ),
    "quota": Scenario((*MILLSTONE, "--no-report", "--rpm", "6000")),
    "cap": Scenario((*MILLSTONE, "--no-report", "--max-cost", "5", "--config", "prices.toml")),
    "snapshot": Scenario(
        ("cache", "export", "run", "whole.snapshot"),
        before=((*MILLSTONE, "--no-report"),),
        kept=("whole.snapshot",),
        # The snapshot was whole when its process died: no other takes its name.
        after=2,
    ),
    "from a snapshot": Scenario(
        ("cache", "import", "whole.snapshot", "--cache", "other"),
        before=((*MILLSTONE, "--no-report"), ("cache", "export", "run", "whole.snapshot")),
        kept=("whole.snapshot",),
    ),
    "prune": Scenario(("cache", "prune", "--all", "--cache", "cache"), before=((*MILLSTONE, "--no-report"),)),
}
QUICK = ("MillStone", "batch")


def reaching(outside: Outside, command: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a command with the addresses of what it sends to."""
    if command[0] not in ("run", "judge", "batch"):
        return command
    return (*command, *(outside.flags if "chameleon" in command else ("--base-url", outside.provider.base_url)))


def prepared(name: str, scenario: Scenario, outside: Outside, home: Path) -> None:
    """Makes a folder as it is before the command."""
    home.mkdir(parents=True)
    write_sound(home / "in.jsonl", 20)
    (home / "graded.py").write_text(GRADED)
    (home / "talk.py").write_text(SEVERAL)
    (home / "prices.toml").write_text(PRICED)
    for command in scenario.before:
        assert run_command(home, *reaching(outside, command), **outside.variables).code in (0, 3), name


def made(home: Path, scenario: Scenario) -> dict[str, Any]:
    """Returns what the command has made, without what differs from run to run."""
    found = dict[str, Any]()
    for name in scenario.kept:
        path = home / name
        if path.is_dir():
            for lines in sorted(path.glob("*.jsonl")):
                found[lines.name] = sorted(
                    json.dumps([line.get(key) for key in ("id", "model", "status", "judge", "turn", "trial")])
                    for line in lines_of(lines)
                )
            found["scores"] = scores_of(path)
        elif name.endswith(".jsonl"):
            found[name] = sorted(line["custom_id"] for line in lines_of(path))
        else:
            found[name] = path.exists()
    return found


def points_of(changes: list[FileWrite]) -> list[KillPoint]:
    """Returns the first and the last change of each name and file, and the middle of those that a kill can cut."""
    found, parted = Counter[tuple[str, str]](), list[KillPoint]()
    for change in changes:
        found[change.point] += 1
        if change.name == "write" and change.pages > 1:
            parted.append(KillPoint(*change.point, found[change.point], is_halfway=True))
    whole = [KillPoint(*point, number) for point, count in found.items() for number in sorted({1, count})]
    return [*whole, *parted]


def killed_at(home: Path, folder: WatchedFolder, command: tuple[str, ...], outside: Outside, point: KillPoint) -> bool:
    """Runs a command that dies at a point; returns whether it got there."""
    done = finish(start(home, *command, **outside.variables, **folder.killing(point)))
    assert done.code in (-signal.SIGKILL, 0, 2, 3), f"{point}: {done.err}"
    return done.code == -signal.SIGKILL


@pytest.mark.parametrize("name", SCENARIOS if IS_LONG else QUICK)
def test_a_command_killed_at_a_point_between_two_writes_ends_as_one_that_was_not(
    outside: Outside, tmp_path: Path, name: str
) -> None:
    scenario, random = SCENARIOS[name], Random(f"{SEED}/{name}")
    whole, home = tmp_path / "whole", tmp_path / "home"
    prepared(name, scenario, outside, whole)
    command, folder = reaching(outside, scenario.command), WatchedFolder(home, tmp_path)
    shutil.copytree(whole, home)
    outside.provider.reset()
    done = finish(start(home, *command, **outside.variables, **folder.recording()))
    assert done.code == scenario.code, done.err
    wanted, expected = outside.provider.received(), made(home, scenario)
    points, again, killed, most = points_of(folder.changes()), 0, 0, 0
    for point in points if IS_LONG else random.sample(points, POINTS):
        shutil.rmtree(home)
        shutil.copytree(whole, home)
        outside.provider.reset()
        kills = int(killed_at(home, folder, command, outside, point))
        then = random.choice(points)
        if kills:
            kills += killed_at(home, folder, command, outside, then)
        told = f"killed {point}, then {then}"
        done = run_command(home, *command, **outside.variables)
        assert done.code in (scenario.code, scenario.after), f"{told}: {done.code}: {done.err}"
        assert made(home, scenario) == expected, told
        proof = proof_of(home, scenario)
        assert proof.code == 0, f"{told}: {proof.out}{proof.err}"
        received = outside.provider.received()
        assert not wanted - received, told
        beyond = (received - wanted).total()
        assert beyond <= kills * CONCURRENCY * scenario.lanes, f"{told}: {beyond} calls sent again"
        again, killed, most = again + beyond, killed + kills, max(most, beyond)
    assert killed >= len(points) // 2 if IS_LONG else killed, "the points were not reached"
    record(
        "1",
        killed,
        killed,
        f"{name}: {len(points)} points, {again} calls sent again, at most {most} after one",
        f"{SEED}",
    )


def proof_of(home: Path, scenario: Scenario) -> Done:
    """Returns what `verify` says of what the command made."""
    if "run" in scenario.kept:
        return run_command(home, "verify", "run")
    if scenario.kept == ("out.jsonl",):
        return run_command(home, "verify", "out.jsonl")
    return run_command(home, "cache", "import", scenario.kept[0], "--cache", "proof")
