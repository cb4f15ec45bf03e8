"""A thousand conversations of twenty calls: memory doesn't grow with the items, since each is forgotten once its line
is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Provider
from watched_memory import run_watched

pytestmark = pytest.mark.long

STEPS = 20
TALKS = f"""
import millstream as ms

class Talks(ms.Benchmark):
    data = "rows.jsonl"
    steps_max = {STEPS}

    async def run(self, item, ask):
        talk = [ms.user(item["text"])]
        for number in range(self.steps_max):
            talk += [await ask(talk), ms.user(f"Question {{number}}. " + "and so on " * 50)]
        return talk[-2].text

    def score(self, item, result):
        return len(result)
"""


def test_a_thousand_items_of_twenty_steps_need_no_more_memory_than_a_hundred(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "talks.py").write_text(TALKS)
    rows = [json.dumps({"id": f"r{number}", "text": f"Talk {number}"}) for number in range(1000)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    grown = {}
    for count in (100, 1000):
        where = ("--base-url", provider.base_url, "--cache", f"cache{count}", "--concurrency", "32", "--no-progress")
        words = ("run", "talks.py", "--model", "sim/open", "--limit", str(count), *where, "--no-report")
        watched = run_watched(tmp_path, *words, "--out", f"run{count}", within_s=110)
        assert watched.done.code == 0, watched.done.err
        records = tmp_path / f"run{count}/records.jsonl"
        assert records.read_bytes().count(b"\n") == count
        # The pages of the cache's file, which the system maps, are the system's to free.
        grown[count] = watched.peak_mb - (tmp_path / f"cache{count}/data.mdb").stat().st_size / 1e6
    assert provider.calls() == 1100 * STEPS
    assert (tmp_path / "run1000/records.jsonl").stat().st_size > 18e6
    assert grown[1000] - grown[100] < 12, grown
