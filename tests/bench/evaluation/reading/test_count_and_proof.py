"""What the journals of a simple benchmark hold is counted as it stands there, and proven: every change is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from evaluated import MODEL, OTHER, PAIRS, SPECIFICATION, Answer, Lives, Talks
from msgspec import Struct

from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.item import Item, steps_of
from millstream.bench.evaluation.door.item_line import StepTotals
from millstream.bench.evaluation.door.listed_run import ListedRun
from millstream.bench.evaluation.door.treatments import specified_pairs
from millstream.bench.evaluation.reading.proving import prove_run
from millstream.bench.evaluation.running.recount import recount
from millstream.engine.endpoint import Fault
from millstream.engine.runs.journal import read_lines, sealed
from millstream.engine.runs.proof import Proof
from millstream.engine.runs.run_folder import FAILURES, RECORDS, RunFolder, read_manifest

TALKS = Talks()
STEPS = steps_of(TALKS.items(None), TALKS.title)
ITEMS = tuple(TALKS.items(None))


def script(prompt: str, at: float) -> Fault | None:
    return Fault("rejected", "400: no", "never", 400) if prompt.startswith("script/m @ 0.5 t2/2") else None


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose second turn of `t2` failed, closed with its counts."""
    Lives(tmp_path).live(TALKS, script=script)
    folder = tmp_path / "run"
    counted = counted_in(folder)
    with RunFolder(folder, SPECIFICATION) as opened:
        rows = []
        for pair, ended in counted.pairs.items():
            failed = dict(ended.failed)
            rows.append({**pair._asdict(), "ok": ended.ok, "refused": 0, "failed": failed, "cost": ended.cost})
        opened.write_manifest(ended="now", counts=rows)
    (folder / "scores.json").write_bytes(orjson.dumps({"talks": {"models": {MODEL: {"score": 1}}, "unmeasured": []}}))
    return folder


def counted_in(folder: Path) -> StepTotals:
    journals = {name: read_lines(folder / name) for name in (RECORDS, FAILURES)}
    return recount(StepTotals(), journals, dict.fromkeys(PAIRS, STEPS))


def check(record: Answer, item: Item | None) -> str | None:
    assert item is None or record.step in range(1, item.steps + 1)
    return None if record.score == len(f"answer to judge {record.text}") else "score: not the judge's"


class ScoredTalks(ItemBenchmark[Answer]):
    """The talks, of which nobody has the data any more."""

    name, title, Record = "talks", "Talks", Answer
    Readings = Struct

    def __init__(self, items: Sequence[Item] | None) -> None:
        self._items = items

    def listed(self, manifest: Mapping[str, Any]) -> ListedRun:
        return ListedRun(items=self._items, data=None, check=check, title="Long Talks", unproven=("colours",))

    def score_records(self, records: Iterable[Answer], readings: Any, specification: Any) -> Mapping[str, Any]:
        return {"models": {MODEL: {"score": 1}}}


def proven(folder: Path) -> Proof:
    return prove_run(ScoredTalks(ITEMS), folder, read_manifest(folder))


def test_each_pair_is_counted_as_its_lines_say(run: Path) -> None:
    counted = counted_in(run)
    one, other = (counted.of(pair) for pair in PAIRS)
    assert (one.ok, one.failed, one.held, other.ok, other.held) == (16, {"rejected": 1}, 1, 18, 0)
    assert counted.roles == {PAIRS[0]: {"subject": 1}}
    lines = [orjson.loads(line) for line in read_lines(run / RECORDS)]
    assert other.cost == pytest.approx(sum(line["cost"] for line in lines if line["model"] == OTHER))
    assert counted.judging[PAIRS[1]].output_tokens == other.output_tokens == 18
    assert counted.judging[PAIRS[1]].cost is not None


def test_what_came_from_the_cache_is_no_token_of_this_run(tmp_path: Path, run: Path) -> None:
    again = Lives(tmp_path / "again")
    (tmp_path / "again").mkdir()
    (tmp_path / "cache").rename(tmp_path / "again" / "cache")
    again.live(TALKS)
    counted = counted_in(tmp_path / "again" / "run").of(PAIRS[1])
    assert (counted.cached, counted.output_tokens, counted.cost) == (18, 0, 0.0)


def test_a_sound_run_is_proven_and_what_a_failure_holds_back_is_not_missing(run: Path) -> None:
    proof = proven(run)
    assert proof.wrong == []
    assert (proof.records, proof.failures, proof.held, proof.pending) == (34, 1, 1, 0)


def edited(change: Callable[[dict[str, object]], object], name: str = RECORDS) -> Callable[[Path], None]:
    """Change the first line of a journal, and seal it anew."""

    def edit(folder: Path) -> None:
        first, *rest = (folder / name).read_bytes().splitlines(keepends=True)
        line = orjson.loads(first)
        del line["crc"]
        change(line)
        (folder / name).write_bytes(sealed(orjson.dumps(line)) + b"".join(rest))

    return edit


def twice(folder: Path) -> None:
    lines = (folder / RECORDS).read_bytes().splitlines(keepends=True)
    (folder / RECORDS).write_bytes(b"".join([*lines, lines[4]]))


def after_a_failure(folder: Path) -> None:
    line = next(line for line in read_lines(folder / RECORDS) if b'"id":"t3/3"' in line and b'"script/m"' in line)
    data = orjson.loads(line) | {"id": "t2/3", "item": "t2"}
    del data["crc"]
    with (folder / RECORDS).open("ab") as file:
        file.write(sealed(orjson.dumps(data)))


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (edited(lambda line: line.update(id="t9/1", item="t9")), "records.jsonl line 1: id t9/1 is not in this run"),
        (edited(lambda line: line.update(item="t5")), "has the item 't5'"),
        (edited(lambda line: line.update(model="a/b")), "a/b @ 0.5 is not in this run"),
        (edited(lambda line: line.update(score=1.0)), "records.jsonl line 1: score: not the judge's"),
        (edited(lambda line: line.update(status="timeout")), "status timeout does not belong in this file"),
        (edited(lambda line: line.update(status="ok"), FAILURES), "status ok does not belong in this file"),
        (edited(lambda line: line.update(cost=5.0)), "failures.jsonl hold $5."),
        (edited(lambda line: line.update(score="high")), "no record of Long Talks"),
        (twice, "stands there twice"),
        (after_a_failure, "t2 of script/m @ 0.5: step 2 failed, and 1 later steps were asked"),
    ],
)
def test_whatever_is_changed_is_found(run: Path, tamper: Callable[[Path], None], said: str) -> None:
    tamper(run)
    assert any(said in wrong for wrong in proven(run).wrong), proven(run).wrong


def test_without_the_benchmarks_code_nobody_looks_for_missing_items_and_it_says_so(run: Path) -> None:
    data, items, others = prove_run(ScoredTalks(None), run, read_manifest(run)).unproven
    assert data.startswith("data set: not reachable") and others == "colours"
    assert items.startswith("items: the benchmark's code is not run here")


def test_lines_of_a_pair_that_is_not_in_the_run_are_found(run: Path) -> None:
    manifest = read_manifest(run)
    manifest["specification"] = specified_pairs(PAIRS[1:])
    before, now = proven(run).wrongs, prove_run(ScoredTalks(ITEMS), run, manifest)
    assert before == 0 and sum("is not in this run" in wrong for wrong in now.wrong) == 17
