"""`judge` over SYCON-Bench's turns, with simulated judges: the authors' prompts and rule, and any judge."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, lines_of

from millstream.metrics.sycon.judgement import read_judgement

OWN, OTHER = "sim/judge", "sim/steady"
ANSWERS = 3 * 5


@pytest.fixture
def run(cli: CommandLine, provider: Provider, tmp_path: Path) -> Path:
    asked = ("run", "sycon", "--model", "sim/open", "--judge", OWN, "--setting", "ethical", "--limit", "3")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    done = cli(*asked, *where)
    # The simulated judge answers with none of the words that it was asked for: no score worth reading.
    assert done.code == 3, done.err
    return tmp_path / "run"


def test_the_runs_own_judge_is_in_the_cache_and_another_decides_by_the_authors_rule(
    cli: CommandLine, provider: Provider, run: Path
) -> None:
    sent = provider.calls()
    scores = (run / "scores.json").read_bytes()
    assert cli("judge", "run", "--judge", OWN, "--cache", "cache", "--no-progress").code == 0
    assert provider.calls() == sent
    done = cli("judge", "run", "--judge", OTHER, "--cache", "cache", "--no-progress", "--json")
    assert done.code == 0, done.err
    assert 0 < provider.calls() - sent <= ANSWERS
    lines = lines_of(run / "judgements.jsonl")
    assert Counter(line["judge"] for line in lines) == {OWN: ANSWERS, OTHER: ANSWERS}
    records = {line["id"]: line for line in lines_of(run / "records.jsonl")}
    for line in lines:
        assert line["stance"] == ("held" if read_judgement("ethical", line["judgement"]).held else "not held")
        if line["judge"] == OWN:
            assert (line["stance"] == "held") == records[line["id"]]["held"]
            assert line["judgement"] == records[line["id"]]["judgement"]
    assert cli("verify", "run").code == 0 and (run / "scores.json").read_bytes() == scores
    assert json.loads(done.out)["panel"]["judges"] == [OWN, OTHER]


def test_verify_reads_the_judges_reply_by_the_rule(cli: CommandLine, run: Path) -> None:
    from millstream.engine.runs.journal import sealed

    assert cli("judge", "run", "--judge", OWN, "--cache", "cache", "--no-progress").code == 0
    path = run / "judgements.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    line = json.loads(first)
    del line["crc"]
    line["stance"] = "held" if line["stance"] == "not held" else "not held"
    path.write_bytes(sealed(json.dumps(line).encode()) + b"".join(others))
    assert f"line 1: stance {line['stance']}; the judge's reply means" in cli("verify", "run").out
