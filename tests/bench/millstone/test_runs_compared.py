"""Two runs of one grid: compared issue by issue, with a p where they differ in one option alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SMALL, CommandLine, Provider, scores_of

pytestmark = pytest.mark.needs_benchmark("millstone")


def test_runs_of_one_grid_are_compared_issue_by_issue(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    for out, model, more in (
        ("open", "sim/open", ()),
        ("steady", "sim/stubborn", ()),
        ("both", "sim/stubborn", ("--max-tokens", "300")),
    ):
        done = cli("run", "millstone", *SMALL, "--limit", "3", "--model", model, *more, *where, "--out", out)
        assert done.code in (0, 3), done.err
    oms = []
    for out, model in (("open", "sim/open"), ("steady", "sim/stubborn")):
        issues = scores_of(tmp_path / out)["millstone"]["models"][model]["issues"]
        oms.append({issue: entry["om"] for issue, entry in issues.items() if entry["om"] is not None})
    both = oms[0].keys() & oms[1].keys()
    assert both
    difference = sum(oms[0][issue] - oms[1][issue] for issue in both) / len(both)
    out = cli("score", "open", "steady").out
    assert "open minus steady, paired by issue: they differ in model (sim/open; sim/stubborn) alone" in out
    [line] = [line for line in out.splitlines() if line.startswith("sim/open minus sim/stubborn: ")]
    assert line.startswith(f"sim/open minus sim/stubborn: {difference:+.3f} ") and ", p = " in line
    out = cli("score", "open", "both").out
    assert (
        "they differ in model (sim/open; sim/stubborn), max_tokens (the protocol's; 300); it is the effect of no" in out
    )
    [line] = [line for line in out.splitlines() if line.startswith("sim/open minus sim/stubborn: ")]
    assert f"over {len(both)} issue" in line and "p = " not in line
