"""Runs that end early or with failures, and what `resume`, `retry` and the same command make of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from toy_outside import COST, Toys, ToyServer


def paid(toys: Toys, out: str = "run") -> float:
    """The dollars in both journals."""
    return sum(line["cost"] or 0.0 for name in ("records", "failures") for line in toys.lines(name, out))


def test_the_same_command_on_a_finished_run_sends_and_writes_nothing(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts", "--limit", "3")
    records, manifest = toys.lines(), toys.file("manifest.json")
    server.asked.clear()
    for done in (toys.run("doubts", "--limit", "3"), toys.again("resume"), toys.again("retry")):
        assert done.code == 0 and "nothing was sent" in done.out
    assert server.asked == [] and toys.lines() == records
    assert toys.file("manifest.json")["ended"] == manifest["ended"]
    assert toys.file("manifest.json")["run_id"] == manifest["run_id"]


def test_failures_have_lines_of_their_own_and_end_with_3(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: What is [35] "):
        done = toys.run("sums")
    assert done.code == 3
    failures = sorted(toys.lines("failures"), key=lambda line: str(line["id"]))
    assert [line["id"] for line in failures] == ["s3.0", "s5.0"]
    for line in failures:
        assert (line["status"], line["role"], line["text"], line["group"]) == ("rejected", "subject", None, "odd")
        assert "told to fail" in line["error"] and "right" not in line
    assert len(toys.lines()) == 6 and toys.scores() == {"lab/good": 1.0}
    assert "failed: rejected 2" in done.out and f"millstream retry {toys.home / 'run'}" in done.out
    assert toys.file("manifest.json")["counts"][0]["failed"] == {"rejected": 2}


def test_neither_resume_nor_the_same_command_asks_a_failure_again(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: What is 3 "):
        toys.run("sums")
    server.asked.clear()
    assert toys.run("sums").code == toys.again("resume").code == 3
    assert server.asked == [] and len(toys.lines("failures")) == 1


def test_retry_asks_the_failures_alone_and_retires_their_file(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: What is [35] "):
        toys.run("sums")
    before, failures = toys.lines(), toys.lines("failures")
    server.asked.clear()
    done = toys.again("retry")
    assert done.code == 0, done.err
    assert sorted(server.prompts()) == [("good", "What is 3 + 10?"), ("good", "What is 5 + 10?")]
    assert toys.lines()[:6] == before and len(toys.lines()) == 8
    assert toys.lines("failures") == [] and toys.lines("failures-1") == failures
    assert toys.file("manifest.json")["counts"][0]["failed"] == {}
    assert toys.cli("verify", "run").code == 0


def test_what_fails_again_is_in_the_new_file_and_each_retry_retires_one(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: What is [35] "):
        toys.run("sums")
    with server.failing("good: What is 5 "):
        assert toys.again("retry").code == 3
        assert [line["id"] for line in toys.lines("failures")] == ["s5.0"]
    assert toys.again("retry").code == 0
    assert [len(toys.lines(name)) for name in ("failures", "failures-1", "failures-2")] == [0, 2, 1]


def test_a_failed_step_holds_the_later_ones_back_until_it_is_retried(toys: Toys, server: ToyServer) -> None:
    with server.failing("weak: Doubt 2: not 13. What is 2 "):
        done = toys.run("doubts", "--limit", "4", "--json", model="lab/weak")
    # Of d2 the third step is the one that doubts 13; nothing is lost of what came before.
    assert done.code == 3
    assert [line["id"] for line in toys.lines("failures")] == ["d2/3"]
    assert sorted(line["id"] for line in toys.lines() if line["item"] == "d2") == ["d2/1", "d2/2"]
    server.asked.clear()
    assert toys.again("retry").code == 0
    assert server.prompts() == {
        ("weak", "Doubt 2: not 13. What is 2 + 10?"): 1,
        ("judge", "Answer 3: 2 + 10 is 14. Say yes or no."): 1,
    }
    assert len(toys.lines()) == 12 and toys.lines("failures") == []


def test_an_early_step_that_fails_counts_the_later_ones_as_held_and_retry_asks_them_all(
    toys: Toys, server: ToyServer
) -> None:
    with server.failing("good: What is 1 "):
        toys.run("doubts", "--limit", "3")
    (row,) = toys.file("manifest.json")["counts"]
    assert (row["ok"], row["failed"], row["held"], row["pending"]) == (6, {"rejected": 1}, 2, 0)
    assert toys.again("retry").code == 0
    assert [line["id"] for line in toys.answers() if line["item"] == "d1"] == ["d1/1", "d1/2", "d1/3"]


@pytest.mark.parametrize("mode", ["record", "live"])
def test_a_judge_that_fails_is_named_and_the_answer_is_not_paid_for_twice(
    toys: Toys, server: ToyServer, mode: str
) -> None:
    with server.failing("judge: Answer 2: 1 "):
        assert toys.run("doubts", "--limit", "3", "--mode", mode).code == 3
    (failure,) = toys.lines("failures")
    assert (failure["id"], failure["role"], failure["cost"]) == ("d1/2", "judge", COST)
    assert "lab/judge" in failure["error"]
    server.asked.clear()
    assert toys.again("retry").code == 0
    # The answer that could not be judged comes from the cache.
    assert sorted(server.prompts()) == [
        ("good", "Doubt 2: not 11. What is 1 + 10?"),
        ("judge", "Answer 2: 1 + 10 is 11. Say yes or no."),
        ("judge", "Answer 3: 1 + 10 is 11. Say yes or no."),
    ]


def test_the_summary_says_for_how_many_answers_from_the_cache_a_judge_was_asked(toys: Toys) -> None:
    assert toys.run("doubts", "--limit", "3").code == 0
    done = toys.run("doubts", "--limit", "3", "--judge", "lab/lax", out="lax")
    assert done.code == 0 and "9 answers, 9 of them from the cache; judges' calls were sent for 9 (" in done.out


def test_another_run_in_the_same_folder_is_refused_and_the_folder_stays(toys: Toys, server: ToyServer) -> None:
    toys.run("sums")
    before = {path: path.read_bytes() for path in (toys.home / "run").iterdir()}
    server.asked.clear()
    for name, option, value, said in (
        ("sums", "--limit", "9", "items: 8 in that run, 9 in this"),
        ("sums", "--temperature", "1", "temperature"),
        ("sums", "--max-tokens", "7", "max_tokens"),
        ("twins", "--limit", "8", "benchmark: sums in that run, twins in this"),
    ):
        done = toys.run(name, option, value)
        assert done.code == 2 and said in done.err and "choose another --out" in done.err
    assert server.asked == [] and {path: path.read_bytes() for path in (toys.home / "run").iterdir()} == before


def test_options_of_sending_and_readings_make_no_other_run(toys: Toys, server: ToyServer) -> None:
    with server.failing("good: ", 401, after=3):
        assert toys.run("sums", "--concurrency", "1").code == 4
    done = toys.run("sums", "--concurrency", "7", "--lenient")
    assert done.code == 0, done.err
    assert len(toys.lines()) == 8


# So many conversations that some wait until others have ended.
@pytest.mark.parametrize(("name", "items", "lines", "calls"), [("sums", 30, 30, 30), ("doubts", 40, 120, 240)])
def test_a_dead_key_stops_its_model_with_4_and_resume_finishes(
    toys: Toys, server: ToyServer, name: str, items: int, lines: int, calls: int
) -> None:
    with server.failing("good: ", 401):
        done = toys.run(name, "--limit", str(items), "--json", model="lab/good lab/weak")
    assert done.code == 4
    (summary,) = json.loads(done.out)["runs"]
    assert [(stop["lane"], stop["reason"]) for stop in summary["stops"]] == [("lab/good", "dead_key")]
    counts = {row["model"]: (row["ok"], row["pending"]) for row in summary["counts"]}
    assert counts == {"lab/good": (0, lines), "lab/weak": (lines, 0)}
    # Those in flight, and one or two that confirm it.
    assert sum(asked.model == "good" for asked in server.asked) <= 8
    assert toys.lines("failures") == []
    server.asked.clear()
    assert toys.again("resume").code == 0
    assert {asked.model for asked in server.asked} <= {"good", "judge"} and len(server.asked) <= calls
    assert toys.scores()["lab/good"] == 1.0 and len(toys.lines()) == 2 * lines


def test_a_judge_whose_key_is_dead_stops_the_conversations_and_resume_pays_no_answer_again(
    toys: Toys, server: ToyServer
) -> None:
    with server.failing("judge: ", 401, after=6):
        assert toys.run("doubts").code == 4
    assert toys.lines("failures") == [] and 0 < len(toys.lines()) < 24
    assert toys.again("resume").code == 0
    assert len(toys.lines()) == 24
    subjects = [count for (model, _), count in server.prompts().items() if model == "good"]
    assert len(subjects) == 24 and set(subjects) == {1}


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_a_budget_is_never_passed_and_a_raised_one_finishes(toys: Toys, server: ToyServer, name: str) -> None:
    # An answer of 5 tokens costs 1.5, and at worst some dollars for a prompt whose tokens nobody knows before.
    limited = ("--max-tokens", "5", "--max-cost", "25")
    done = toys.run(name, *limited, "--limit", "20", "--json")
    assert done.code == 4
    (summary,) = json.loads(done.out)["runs"]
    assert {stop["reason"] for stop in summary["stops"]} == {"budget"}
    first = COST * len(server.asked)
    assert 0 < first <= 25 and summary["money"] is not None
    assert toys.again("resume").code == 4 and COST * len(server.asked) <= 25
    done = toys.again("resume", "--max-cost", "1000")
    assert done.code == 0, done.err
    assert max(server.prompts().values()) == 1
    unrecorded = toys.file("manifest.json").get("cost_unrecorded", 0.0)
    assert paid(toys) + unrecorded == pytest.approx(COST * len(server.asked))
    assert toys.scores() == {"lab/good": 1.0}


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_a_budget_counts_what_the_folder_cost_before_it_had_one(toys: Toys, server: ToyServer, name: str) -> None:
    with server.failing("good: ", 401, after=6):
        assert toys.run(name, "--max-tokens", "5", "--concurrency", "1").code == 4
    before, cost = len(server.asked), paid(toys)
    assert cost >= 5 * COST
    assert toys.again("resume", "--max-cost", f"{cost + 1}").code == 4 and len(server.asked) == before
    assert toys.again("resume", "--max-cost", "1000").code == 0


def test_answers_that_say_nothing_end_with_3_and_a_reading_of_the_author_counts_them(toys: Toys) -> None:
    done = toys.run("sums", model="lab/good lab/mute")
    assert done.code == 3
    assert "lab/mute: 8 answers are not read" in done.out and "not everything was measured" in done.out
    assert len(toys.lines()) == 16 and toys.lines("failures") == []
    assert toys.scores() == {"lab/good": 1.0, "lab/mute": 0.0}
    assert toys.run("sums", "--lenient", model="lab/mute", out="lenient").code == 0
    assert toys.scores("lenient") == {"lab/mute": 1.0}


def test_a_model_of_which_everything_fails_has_no_score_and_the_other_has(toys: Toys, server: ToyServer) -> None:
    with server.failing("poor: "):
        done = toys.run("sums", model="lab/good lab/poor")
    assert done.code == 3
    assert toys.scores() == {"lab/good": 1.0}
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("lab/poor ")] == ["-"]
    assert toys.again("retry").code == 0 and toys.scores() == {"lab/good": 1.0, "lab/poor": 0.5}


def test_a_defect_of_the_author_is_one_line_and_2_and_the_same_command_goes_on_once_it_is_mended(
    toys: Toys, server: ToyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []
    for defect, said in (
        ("s5.0", "Sums, item 's5.0': its code raised IndexError: by hand (toy_benchmark.py line "),
        ("score", "Sums: its code raised ValueError: by hand (toy_benchmark.py line "),
    ):
        monkeypatch.setenv("TOY_DEFECT", defect)
        done = toys.run("sums")
        assert done.code == 2
        (line,) = (line for line in done.err.splitlines() if "its code raised" in line)
        assert said in line and line.endswith("what was answered is in the cache: correct it and run again")
        assert toys.lines()[: len(kept)] == kept
        kept = toys.lines()
    monkeypatch.delenv("TOY_DEFECT")
    assert toys.run("sums").code == 0 and len(toys.lines()) == 8
    assert max(server.prompts().values()) == 1
