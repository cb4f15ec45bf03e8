"""`plan chameleon --pilot N`: conversations of the run, paid once, and an interval that the run then keeps to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done, lines_of
from simulated_outside import Outside

PILOT, CONVERSATIONS, TURNS = 4, 8, 2
PRICES = '[prices."sim/open"]\ninput = 1\noutput = 40\n[prices."sim/judge"]\ninput = 2\noutput = 10\n'


def asked(outside: Outside, folder: Path, *more: str) -> tuple[str, ...]:
    config = folder / "config.toml"
    config.write_text(outside.lanes.read_text() + PRICES)
    size = ("--conversations", str(CONVERSATIONS), "--turns", str(TURNS), "--pages", "1", "--no-progress")
    models = ("--model", "sim/open", "--judge", "sim/judge", "--temperature", "0")
    return (
        "chameleon",
        *models,
        *size,
        "--uncited",
        "literal",
        *outside.flags[:-1],
        str(config),
        "--cache",
        "cache",
        *more,
    )


def pilot_of(done: Done) -> dict[str, Any]:
    (run,) = json.loads(done.out)["runs"]
    found: dict[str, Any]
    (found,) = run["pilot"]["estimates"]
    return found


@pytest.mark.long
def test_the_intervals_hold_what_the_run_then_takes_and_the_run_pays_for_no_pilots_answer_again(
    cli: CommandLine, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARXNG_BASE_URL", outside.web)
    command = asked(outside, tmp_path)
    done = cli("plan", *command, "--pilot", str(PILOT), "--json")
    assert done.code == 0, done.err
    assert f"pilot: {PILOT} conversations with each of sim/open @ 0, {PILOT * TURNS} turns" in done.err
    found, before = pilot_of(done), outside.provider.calls()
    # A query, an answer and a judgement a turn.
    assert before == PILOT * TURNS * 3 and (found["whole"], found["left"]) == (PILOT, CONVERSATIONS - PILOT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "config.toml"]
    again = pilot_of(cli("plan", *command, "--pilot", str(PILOT), "--json"))
    assert outside.provider.calls() == before and again["spent"] == 0
    # Which conversation fetches a host's robots.txt first is chance.
    assert again["cost"] == found["cost"] and again["lanes"][:3] == found["lanes"][:3]
    assert cli("run", *command, "--out", "run", "--no-report").code == 0
    assert outside.provider.calls() == CONVERSATIONS * TURNS * 3
    lines = lines_of(tmp_path / "run/records.jsonl")
    assert len(lines) == CONVERSATIONS * TURNS
    low, high = found["cost"]["ci95"]
    assert 0 < low <= sum(line["cost"] for line in lines) <= high
    rows = {row["lane"]: row for row in found["lanes"]}
    judged = sum(line["usage_judge"]["input"] for line in lines if line["cost"])
    low, high = rows["sim/judge"]["input_tokens"]["ci95"]
    assert low <= judged <= high and rows["sim/judge"]["calls"]["estimate"] == (CONVERSATIONS - PILOT) * TURNS
