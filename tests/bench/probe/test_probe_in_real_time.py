"""A probe and the run after it over real sockets and real minutes: `make torture` plays them, since each takes some."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, Provider, finish, simulated_provider, start
from torture import IS_LONG

MODEL = "sim/open"
RUN_S = 135.0

pytestmark = [
    pytest.mark.needs_benchmark("millstone"),
    pytest.mark.skipif(not IS_LONG, reason="takes minutes: make torture"),
    pytest.mark.timeout(1_200),
]


def set_quota(provider: Provider, **quota: Any) -> None:
    body = json.dumps(quota).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{provider.address}/sim/quota", body, method="POST")):
        pass


def rows_of(provider: Provider) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{provider.address}/sim/log", timeout=10) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]


@pytest.mark.parametrize(
    "quota",
    [
        {"requests": 120, "tokens": 60_000, "rule": "sliding"},
        {"requests": 240, "rule": "fixed"},
        {"requests": 180, "rule": "bucket", "burst": 0.5},
    ],
    ids=lambda quota: quota["rule"],
)
def test_what_is_found_is_true_and_a_run_right_after_it_is_never_refused(tmp_path: Path, quota: dict[str, Any]) -> None:
    with simulated_provider(tmp_path) as provider:
        set_quota(provider, **quota)
        where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
        done = finish(start(tmp_path, "probe", MODEL, *where, "--json", "--out", "lanes.toml"), within_s=900)
        assert done.code == 0, done.err
        found, told = json.loads(done.out)["lanes"][MODEL], json.loads(done.out)
        rpm = quota["requests"]
        # What is enforced is at most 5% above what was found, and never below it.
        assert found["rpm"] <= rpm <= 1.05 * found["rpm"]
        assert found["window"] in (quota["rule"], None)
        assert found["burst"] <= rpm * quota.get("burst", 1)
        assert told["calls"] == provider.calls() < 3 * rpm
        if "tokens" in quota:
            assert found["tpm"] <= quota["tokens"] <= 1.05 * found["tpm"]

        grid = (*SMALL[:4], "--trials", "90", "--max-tokens", "4")
        process = start(tmp_path, "run", "millstone", "--model", MODEL, *grid, *where, "--no-report", "--out", "run",
                        "--config", "lanes.toml")  # fmt: skip
        provider.await_calls(told["calls"] + 1)
        try:
            process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        sent = rows_of(provider)[told["calls"] :]
        assert Counter(row["status"] for row in sent) == {200: len(sent)}
        # Before its last minute what the probe sent still counts: a last burst may be all of a quota.
        minute = [row for row in sent if row["at"] > sent[-1]["at"] - 60]
        used = sum(row["prompt_tokens"] + row["completion_tokens"] for row in minute)
        share = max(len(minute) / rpm, used / quota.get("tokens", float("inf")))
        assert share >= 0.95
