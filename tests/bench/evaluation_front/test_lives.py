"""Runs that a signal, a kill or another process ends or meets: each command in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter

import pytest
from command_line import finish
from toy_outside import COST, Toys, ToyServer

IN_FLIGHT = 4
# A judge's first call goes alone, so calls of judges are not held.
MODELS = "^(good|poor): "


def kill(process: subprocess.Popen[str], toys: Toys) -> None:
    """Kill a command whose calls are held, and wait until the server knows it."""
    os.kill(process.pid, signal.SIGKILL)
    assert finish(process).code == -signal.SIGKILL
    toys.server.await_gone()


# After how many answers of the model each kill comes. In conversations the judge has its own calls in flight.
@pytest.mark.parametrize(
    ("name", "lines", "calls", "kills", "in_flight"),
    [
        pytest.param("sums", 20, 20, (0, 1, 9), IN_FLIGHT, marks=pytest.mark.long),
        ("doubts", 24, 48, (0, 5, 9), 2 * IN_FLIGHT),
    ],
)
def test_a_run_killed_again_and_again_ends_as_one_that_was_not(
    toys: Toys, server: ToyServer, name: str, lines: int, calls: int, kills: tuple[int, ...], in_flight: int
) -> None:
    words = toys.words("run", name, "--limit", "20" if name == "sums" else "8", model="lab/poor")
    for after in kills:
        server.hold(after, MODELS)
        process = toys.start(*words)
        server.await_waiting(IN_FLIGHT)
        kept = toys.lines()
        kill(process, toys)
        assert toys.lines()[: len(kept)] == kept
        server.release()
    assert toys.file("manifest.json")["ended"] is None
    done = toys.cli(*words)
    assert done.code == 0, done.err
    ids = [line["id"] for line in toys.lines()]
    assert len(ids) == len(set(ids)) == lines
    assert calls <= len(server.asked) <= calls + in_flight * len(kills)
    assert f"killed before: at most {in_flight * len(kills)} calls in flight then may have been billed" in done.out
    assert toys.cli("verify", "run").code == 0
    toys.cli(*words, "--out", "whole", "--cache", "other")
    assert toys.answers() == toys.answers("whole")
    assert toys.file("scores.json") == toys.file("scores.json", "whole")


def test_a_killed_run_is_finished_by_resume_which_needs_no_option(toys: Toys, server: ToyServer) -> None:
    server.hold(10, MODELS)
    process = toys.start(*toys.words("run", "doubts"))
    server.await_waiting(IN_FLIGHT)
    # Each step is on disk as soon as it is judged.
    server.await_that(lambda: len(toys.lines()) == 10)
    kill(process, toys)
    server.release()
    pending = toys.cli("verify", "run")
    assert pending.code == 0 and "14 pending" in pending.out and len(toys.lines()) == 10
    done = toys.again("resume")
    assert done.code == 0 and toys.scores() == {"lab/good": 1.0}
    manifest = toys.file("manifest.json")
    assert manifest["in_flight_at_kills"] == 2 * IN_FLIGHT and manifest["ended"] is not None


def test_a_signal_waits_for_what_is_in_flight_and_the_rest_is_asked_later(toys: Toys, server: ToyServer) -> None:
    server.hold(6)
    process = toys.start(*toys.words("run", "sums", "--limit", "20"))
    server.await_waiting(IN_FLIGHT)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    server.release()
    done = finish(process)
    assert done.code == 143, done.err
    # Drained: what was sent is on disk, and nothing more was sent.
    assert len(toys.lines()) == len(server.asked) == 6 + IN_FLIGHT
    assert toys.file("manifest.json")["ended"] is not None and "resume" in done.out
    assert toys.again("resume").code == 0
    assert len(toys.lines()) == len(server.asked) == 20 and max(server.prompts().values()) == 1


def test_a_signal_in_conversations_loses_no_answer(toys: Toys, server: ToyServer) -> None:
    server.hold(11, MODELS)
    process = toys.start(*toys.words("run", "doubts"))
    server.await_waiting(IN_FLIGHT)
    process.send_signal(signal.SIGINT)
    server.release()
    assert finish(process).code == 130
    assert len(server.asked) < 48 and len(toys.lines()) < 24 and toys.lines("failures") == []
    unrecorded = toys.file("manifest.json").get("cost_unrecorded", 0.0)
    assert sum(line["cost"] for line in toys.lines()) + unrecorded == pytest.approx(COST * len(server.asked))
    assert toys.again("resume").code == 0
    assert len(server.asked) == 48 and max(server.prompts().values()) == 1


def test_a_second_signal_waits_for_nothing(toys: Toys, server: ToyServer) -> None:
    server.hold(6)
    process = toys.start(*toys.words("run", "sums", "--limit", "20"))
    server.await_waiting(IN_FLIGHT)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert (done.code, len(toys.lines())) == (130, 6) and "Traceback" not in done.err
    assert toys.file("manifest.json")["maybe_billed_pending"] == IN_FLIGHT


def test_of_two_processes_on_one_folder_one_writes_and_the_other_says_who(toys: Toys, server: ToyServer) -> None:
    server.hold(3)
    process = toys.start(*toys.words("run", "sums"))
    server.await_waiting(IN_FLIGHT)
    for verb in ("resume", "retry"):
        done = toys.again(verb)
        assert done.code == 5 and f"is being written by process {process.pid}" in done.err
        assert "--out" not in done.err  # which neither has
    assert toys.run("sums").code == 5 and len(server.asked) == 3 + IN_FLIGHT
    server.release()
    assert finish(process).code == 0 and len(toys.lines()) == len(server.asked) == 8


def test_two_processes_with_one_cache_pay_for_each_answer_once(toys: Toys, server: ToyServer) -> None:
    server.delay_s = 0.02
    both = [toys.start(*toys.words("run", "doubts", out=out)) for out in ("one", "two")]
    assert [finish(process).code for process in both] == [0, 0]
    assert Counter(server.prompts().values()) == {1: 48}
    assert toys.answers("one") == toys.answers("two")
    costs = [line["cost"] for out in ("one", "two") for line in toys.lines(out=out)]
    assert sum(costs) == pytest.approx(48 * COST)


def test_a_killed_retry_is_finished_by_the_next(toys: Toys, server: ToyServer) -> None:
    with server.failing(r"good: What is \d "):
        toys.run("sums", "--limit", "12")
    assert len(toys.lines("failures")) == 10
    server.asked.clear()
    server.hold(3)
    process = toys.start("retry", "run", "--no-report", "--no-progress")
    server.await_waiting(IN_FLIGHT)
    kill(process, toys)
    server.release()
    for _ in range(2):
        done = toys.again("retry")
        assert done.code == 0, done.err
    assert len({line["id"] for line in toys.lines()}) == len(toys.lines()) == 12
    assert toys.lines("failures") == [] and len(server.asked) <= 10 + IN_FLIGHT
    assert toys.cli("verify", "run").code == 0


def test_killed_judging_is_finished_by_the_same_command(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts", model="lab/weak")
    records = toys.lines()
    server.asked.clear()
    server.hold(7)
    words = ("judge", "run", "--judge", "lab/lax", "--config", "lab.toml", "--concurrency", "4", "--no-progress")
    process = toys.start(*words)
    server.await_waiting(IN_FLIGHT)
    kill(process, toys)
    server.release()
    assert toys.cli(*words).code == 0
    judged = toys.lines("judgements")
    assert len({line["id"] for line in judged}) == len(judged) == 24 and toys.lines() == records
    assert len(server.asked) <= 24 + IN_FLIGHT and {asked.model for asked in server.asked} == {"lax"}
