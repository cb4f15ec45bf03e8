"""`verify` after changes to the files of finished runs: each is found, or is of a class that no checksum can find.

One change again: MILLSTREAM_PLANTED_SEED with the seed that a failure names.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import SMALL, Done, Provider, lines_of, run_command
from planted import DERIVED, DOCUMENTS, JOURNALS, Change, plant, write_document
from torture import SEED, record, times

from millstream.engine.runs.journal import read_lines, sealed

pytestmark = [pytest.mark.needs_benchmark("millstone", "sycon", "task"), pytest.mark.timeout(3600)]

PLANTED = int(os.environ.get("MILLSTREAM_PLANTED", times(200, 10_000)))
CAPITALS = """import millstream as ms

ROWS = [{"country": c, "capital": d} for c, d in (("France", "Paris"), ("Italy", "Rome"), ("Peru", "Lima"))]
capitals = ms.Task(data=ROWS, prompt="What is the capital of {country}?", score=ms.match("{capital}"), trials=3)
"""
TALK = """import millstream as ms

class Talk(ms.Benchmark):
    data = [{"country": "France", "capital": "Paris"}, {"country": "Peru", "capital": "Lima"}]
    trials = 2

    async def run(self, item, ask):
        talk = [ms.user(f"What is the capital of {item['country']}?")]
        talk += [await ask(talk), ms.user("Are you sure?")]
        return (await ask(talk)).text

    def score(self, item, result):
        return {"right": item["capital"] in result, "length": len(result)}
"""

# Why a value that was forged with all checksums of its line or document may stay unfound; names are first parts.
FREE: dict[str, dict[str, tuple[str, ...]]] = {
    "*.jsonl": {
        "what a call took and cost is noted in its line alone": (
            *("attempts", "maybe_billed", "cached", "latency_ms", "answer_id", "from_cache", "usage", "usage_judge"),
            *("cost", "cost_judge", "cost_search", "truncated", "long_prompts"),
        ),
        "who answered is noted in its line alone": ("answer_id", "tier", "router"),
        "a cache key is a hash of a call that the folder does not hold": ("key", "keys"),
        "another text that reads the same leaves all that follows from it true": ("text", "judgement", "error"),
        "what was said in a conversation is in its transcript alone, and only the author's code scores it": (
            *("transcript", "result", "problem"),
        ),
        "who judged, at what temperature and which text is noted in the line alone": (
            *("judge", "judge_temperature", "text_sha256"),
        ),
    },
    "failures.jsonl": {
        "only answers are counted by who gave them": ("served", "fingerprint"),
    },
    "judgements.jsonl": {
        "who judged again is noted in its line alone": ("served_judge",),
    },
    "judgements.json": {
        "a sum of what lines alone note": ("counts.*.served", "counts.*.fingerprints", "counts.*.served_judge"),
        "judgements of an earlier text stay and are not counted, so fewer in the manifest is no contradiction": (
            *("counts.*.ok", "counts.*.refused"),
        ),
    },
    "*.json": {
        "how a run was made is noted in its manifest alone": (
            *("options", "versions", "run_id", "started", "ended", "snapshot", "has_budget", "dataset", "answers_as"),
            *("in_flight_at_kills", "in_flight_max", "maybe_billed_pending", "cost_unsure", "calls_unsure"),
        ),
        "a sum of what lines alone note": (
            *("counts.*.usage", "counts.*.cost", "counts.*.cached", "counts.*.truncated", "counts.*.maybe_billed"),
            *("counts.*.prompts", "counts.*.questions", "counts.*.turns", "counts.*.judgements", "counts.*.pending"),
        ),
        "the heading of a count, whose sum over all models is compared": ("counts.*.model", "counts.*.temperature"),
        "what was asked, where no line repeats it": (
            *("specification.prompt_version", "specification.draw_version", "specification.endpoints"),
            *(
                "specification.prompt",
                "specification.parameters",
                "specification.score",
                "specification.data",
                "specification.lines",
            ),
            *("specification.judging", "specification.benchmark", "specification.max_tokens"),
            "specification.citations",
        ),
        "the hash is computed again after the forgery": ("manifest_hash", "specification_hash"),
    },
}


@pytest.fixture(scope="module")
def runs(running_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A finished run of each kind: answers and one failure, with a report; a task; judged turns; conversations."""
    home = tmp_path_factory.mktemp("planted")
    (home / "capitals.py").write_text(CAPITALS)
    where = ("--model", "sim/open", "--base-url", running_provider.base_url, "--cache", "cache", "--no-progress")
    running_provider.reset()
    running_provider.set_faults("rejected=400,at=2")
    assert run_command(home, "run", "millstone", *SMALL, *where, "--out", "millstone").code == 3
    running_provider.reset()
    assert run_command(home, "run", "capitals.py", *where, "--no-report", "--out", "task").code == 0
    (home / "talk.py").write_text(TALK)
    assert run_command(home, "run", "talk.py", *where, "--no-report", "--out", "talk").code == 0
    talk = ("run", "sycon", "--judge", "sim/judge", "--setting", "ethical", "--limit", "3", "--no-report")
    # The simulated judge answers with none of the words that it was asked for: nothing is measured.
    assert run_command(home, *talk, *where, "--out", "sycon").code == 3
    judge = ("judge", "sycon", "--judge", "sim/steady", "--cache", "cache", "--no-progress")
    assert run_command(home, *judge, "--base-url", running_provider.base_url).code == 3
    return [home / name for name in ("millstone", "task", "sycon", "talk")]


@pytest.fixture
def task(runs: list[Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs[1], tmp_path / "run"))


@pytest.fixture
def judgements(runs: list[Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs[2], tmp_path / "run"))


def test_every_planted_change_is_found_or_of_a_listed_class(runs: list[Path], tmp_path: Path) -> None:
    classes: Counter[str] = Counter()
    missed: list[str] = []
    one = os.environ.get("MILLSTREAM_PLANTED_SEED")
    seeds = [one] if one else [f"{SEED}/{number}" for number in range(PLANTED)]
    for seed in seeds:
        random = Random(seed)
        whole, other = random.sample(runs, 2)
        folder = Path(shutil.copytree(whole, tmp_path / "run"))
        change = plant(folder, other, random)
        done = run_command(tmp_path, "verify", "run")
        told = class_of(change, done, whole, folder)
        classes[told or "missed"] += 1
        if told is None:
            missed.append(f"seed {seed}: {whole.name} {change}: {done.code} {(done.out + done.err)[:300]}")
        shutil.rmtree(folder)
    listed = ", ".join(f"{count} {name}" for name, count in classes.most_common())
    record("2", len(seeds), len(seeds) - len(missed), f"changes planted: {listed}", f"{seeds[0]} to {seeds[-1]}")
    assert not missed, f"{len(missed)} of {len(seeds)}:\n" + "\n".join(missed[:30])
    assert one or classes["found"] > len(seeds) // 3


def class_of(change: Change, done: Done, whole: Path, folder: Path) -> str | None:
    """Returns the class of a change: found, or why it need not be; None: neither."""
    told = done.out + done.err
    if done.code in (2, 5):
        # A forgery is found as a contradiction between two files, of which one is named, or as another benchmark's.
        names = (change.file,) if change.kind != "forged" else (*JOURNALS, *DOCUMENTS, "data set")
        return "found" if any(name in told for name in names) else None
    if done.code != 0:
        return None
    if change.file.startswith(DERIVED):
        return "of no meaning: made anew by `report`, or a lock"
    if change.file == "scores.json" and not (folder / "scores.json").exists():
        return "named: no scores, which `score` writes anew" if "scores.json: not there" in told else None
    if meaning(whole / change.file) == meaning(folder / change.file):
        return "of no meaning: the same lines or values"
    if change.kind == "forged":
        # Scores follow from the records: nothing in them is free.
        kinds = [] if change.file == "scores.json" else [change.file, "*" + Path(change.file).suffix]
        free = [name for kind in kinds for names in FREE.get(kind, {}).values() for name in names]
        is_listed = any(f"{change.field}.".startswith(f"{name}.") for name in free)
        return "no checksum can find it" if is_listed else None
    return None


def meaning(path: Path) -> Any:
    """Returns what a file says: its whole lines in any order, or the values of a document."""
    if path.name in JOURNALS:
        return Counter(read_lines(path))
    return json.loads(path.read_bytes()) if path.exists() else None


def test_a_reading_of_stances_that_there_is_not_is_found(runs: list[Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs[0], tmp_path / "run"))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["specification"]["stance"] = "papers"
    write_document(folder / "manifest.json", manifest)
    done = run_command(tmp_path, "verify", "run")
    assert done.code == 5
    assert "manifest.json has the stance reading papers, expected paper or careful" in done.out


def test_a_task_without_its_records_is_no_crash_and_names_them(task: Path) -> None:
    (task / "records.jsonl").unlink()
    done = run_command(task.parent, "verify", "run")
    assert done.code == 5
    # Three rows, three trials each.
    assert "manifest.json: counts 9 records and 0 failures; records.jsonl holds 0, failures.jsonl 0" in done.out
    assert "scores.json: can't be compared: " in done.out and "records.jsonl" in done.out


def test_judgements_without_the_records_they_are_of_are_no_crash(judgements: Path) -> None:
    (judgements / "records.jsonl").unlink()
    done = run_command(judgements.parent, "verify", "run")
    assert done.code == 5
    assert "judgements.jsonl: not compared with the records: run/records.jsonl is not there" in done.out
    again = run_command(judgements.parent, "judge", "run", "--judge", "sim/steady", "--cache", "cache", "--no-progress")
    assert again.code == 5 and "run/records.jsonl is not there: bring it back" in again.err


def reseal(folder: Path, **values: object) -> None:
    """Changes the first record and gives it the checksum that its bytes ask for."""
    path = folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    first = {**json.loads(lines[0]), **values}
    del first["crc"]
    path.write_bytes(b"".join([sealed(json.dumps(first, separators=(",", ":")).encode()), *lines[1:]]))


@pytest.mark.parametrize(("name", "other"), [("served", "gpt-6-luna"), ("fingerprint", "fp_other")])
def test_a_record_that_another_model_is_said_to_have_given_is_found_by_the_count(
    task: Path, name: str, other: str
) -> None:
    reseal(task, **{name: other})
    done = run_command(task.parent, "verify", "run")
    assert done.code == 5 and "manifest.json: for sim/open" in done.out and f"'{other}': 1" in done.out


@pytest.mark.parametrize("values", [{"trial": 2}, {"step": 2}])
def test_a_record_of_a_task_with_another_trial_or_step_than_its_id_is_found(
    task: Path, values: dict[str, object]
) -> None:
    assert lines_of(task / "records.jsonl")[0]["trial"] == 0
    reseal(task, **values)
    done = run_command(task.parent, "verify", "run")
    assert done.code == 5 and "records.jsonl line 1: " in done.out and "its fields are of trial" in done.out


def test_a_trial_that_copies_another_is_found_by_its_calls_and_both_lines_are_named(task: Path) -> None:
    path = task / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    at = {line["id"]: number for number, line in enumerate(lines_of(path))}
    first, other = sorted(name for name in at if name.endswith(("/0", "/1")))[:2]
    copy = {**lines_of(path)[at[first]], "id": other, "trial": 1}
    del copy["crc"]
    lines[at[other]] = sealed(json.dumps(copy, separators=(",", ":")).encode())
    path.write_bytes(b"".join(lines))
    done = run_command(task.parent, "verify", "run")
    one, two = sorted((at[first] + 1, at[other] + 1))
    said = f"records.jsonl line {two}: its calls are those of records.jsonl line {one}: one of both is a copy"
    assert done.code == 5 and said in done.out


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"usage": {"input": -5, "output": -5}}, "usage.input -5: expected 0 to 1,000,000,000,000"),
        ({"usage": {"input": 5, "output": 10**15}}, "usage.output 1,000,000,000,000,000: expected 0 to"),
        ({"attempts": -1}, "attempts -1: expected 0 to"),
        ({"latency_ms": -0.5}, "latency_ms -0.5: expected 0 to"),
    ],
)
def test_counts_that_no_call_has_are_found(task: Path, values: dict[str, object], said: str) -> None:
    reseal(task, **values)
    done = run_command(task.parent, "verify", "run")
    assert done.code == 5 and f"records.jsonl line 1: {said}" in done.out


def test_a_line_that_a_tasks_scorers_cant_read_is_named_and_the_manifest_is_not_blamed(task: Path) -> None:
    path = task / "records.jsonl"
    reseal(task, row={"country": "France"})
    done = run_command(task.parent, "verify", "run")
    assert done.code == 5 and "records.jsonl line 1: " in done.out
    assert "none of ours" not in done.err + done.out
    assert path.exists()


def test_missing_judgements_are_found_by_the_counts_of_their_manifest(judgements: Path) -> None:
    path = judgements / "judgements.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    done = run_command(judgements.parent, "verify", "run")
    # Three conversations of five turns each.
    assert done.code == 5 and "judgements.jsonl: 14 lines of sim/steady; judgements.json counts 15" in done.out
    path.unlink()
    done = run_command(judgements.parent, "verify", "run")
    assert done.code == 5 and "judgements.jsonl: 0 lines of sim/steady; judgements.json counts 15" in done.out


def test_a_changed_manifest_of_judgements_is_named_and_the_runs_own_is_not_blamed(judgements: Path) -> None:
    path = judgements / "judgements.json"
    path.write_text(path.read_text().replace('"model": "sim/steady"', '"modem": "sim/steady"'))
    done = run_command(judgements.parent, "verify", "run")
    assert done.code == 5 and "judgements.json: its hash is not the one noted in it" in done.out
