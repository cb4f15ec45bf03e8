"""`judge` over SYCON-Bench's turns, with simulated judges: the authors' prompts and rule, and any judge."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider, lines_of

from millstream.bench.evaluation.door.kept_answer import Verdict
from millstream.bench.sycon.judging import SyconJudging
from millstream.bench.sycon.options import Options
from millstream.bench.sycon.records import Record
from millstream.metrics.sycon.judgement import read_judgement

OWN, OTHER = "sim/judge", "sim/steady"
ANSWERS = 3 * 5


@pytest.fixture
def run(cli: CommandLine, provider: Provider, tmp_path: Path) -> Path:
    asked = ("run", "sycon", "--model", "sim/open", "--judge", OWN, "--setting", "ethical", "--limit", "3")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    done = cli(*asked, *where)
    # The simulated judge answers with none of the words that it was asked for: nothing is measured.
    assert done.code == 3, done.err
    return tmp_path / "run"


def test_the_runs_own_judge_is_in_the_cache_and_another_decides_by_the_authors_rule(
    cli: CommandLine, provider: Provider, run: Path
) -> None:
    sent = provider.calls()
    scores = (run / "scores.json").read_bytes()
    assert cli("judge", "run", "--judge", OWN, "--cache", "cache", "--no-progress").code == 3
    assert provider.calls() == sent
    done = cli("judge", "run", "--judge", OTHER, "--cache", "cache", "--no-progress", "--json")
    assert done.code == 3, done.err
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
    panel = json.loads(done.out)["panel"]
    assert panel["judges"] == [OWN, OTHER]
    clear = {judge: sum(is_readable(line) for line in lines if line["judge"] == judge) for judge in (OWN, OTHER)}
    assert clear[OWN] < ANSWERS
    assert [(each["judge"], each["unread"]) for each in panel["replies"]] == [
        (judge, ANSWERS - clear[judge]) for judge in (OWN, OTHER)
    ]


def is_readable(line: dict[str, Any]) -> bool:
    return read_judgement("ethical", line["judgement"]).clarity != "unreadable"


@pytest.fixture
def judging() -> SyconJudging:
    run = {"models": ["lab/m"], "temperatures": [None], "groups": {"ethical/base": 1}}
    return SyconJudging({"specification": run}, Options(model=("lab/m",), judge="lab/own"), dict)


def turns(judgement: str | None, held: bool | None) -> list[Record]:
    return [
        Record(id=f"ethical/base/1/{n}", model="lab/m", text="Yes.", judgement=judgement, held=held, judge="lab/own")
        for n in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("judgement", "held", "label"),
    [("1", True, "held"), ("0", False, "not held"), ("No idea.", False, None), (None, False, None), (None, None, None)],
)
def test_what_counts_as_not_held_though_no_judge_said_it_is_no_verdict(
    judging: SyconJudging, judgement: str | None, held: bool | None, label: str | None
) -> None:
    assert judging.verdict(turns(judgement, held)[0]) == Verdict(label, None)


def test_a_majority_is_scored_whatever_the_own_judges_replies_were(judging: SyconJudging) -> None:
    records = turns("No idea.", False)
    (own,) = judging.scores(records).values()
    assert own["ethical/base number of flips"].value is None
    verdicts = [Verdict(label, None) for label in ("held", "not held", "held", "held", "not held")]
    panel = [judging.with_verdict(record, verdict) for record, verdict in zip(records, verdicts, strict=True)]
    (found,) = judging.scores(panel).values()
    # Held, not, held, held, not: first lost in turn 2, and three changes.
    assert found["ethical/base turn of flip"].value == 2 - 1 and found["ethical/base number of flips"].value == 3
    assert judging.with_verdict(records[0], None).held is None


def test_verify_reads_the_judges_reply_by_the_rule(cli: CommandLine, run: Path) -> None:
    from millstream.engine.runs.journal import sealed

    assert cli("judge", "run", "--judge", OWN, "--cache", "cache", "--no-progress").code == 3
    path = run / "judgements.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    line = json.loads(first)
    del line["crc"]
    line["stance"] = "held" if line["stance"] == "not held" else "not held"
    path.write_bytes(sealed(json.dumps(line).encode()) + b"".join(others))
    assert f"line 1: stance {line['stance']}; the judge's reply means" in cli("verify", "run").out
