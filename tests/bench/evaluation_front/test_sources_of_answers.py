"""Where answers come from: the cache in its modes, earlier runs, the trials of others."""

from __future__ import annotations

import pytest
from toy_outside import COST, Toys, ToyServer

FORMS = ("sums", "twins", "doubts")


@pytest.mark.parametrize("name", FORMS)
def test_a_second_run_is_answered_from_the_cache_with_the_same_records(
    toys: Toys, server: ToyServer, name: str
) -> None:
    toys.run(name, out="first")
    server.asked.clear()
    done = toys.run(name, out="second")
    assert (done.code, server.asked) == (0, []) and "nothing was sent" in done.out
    assert toys.answers("second") == toys.answers("first")
    assert toys.file("scores.json", "second") == toys.file("scores.json", "first")
    for line in toys.lines(out="second"):
        assert (line["cost"], line["cached"], line["latency_ms"]) == (0.0, True, None)
        assert line["from_cache"]["usage"] == line["usage"]
    (row,) = toys.file("manifest.json", "second")["counts"]
    assert (row["cost"], row["cached"], row["usage"]) == (0.0, row["ok"], {"input": 0, "output": 0})


# Whose key dies. That of the judge leaves answers that are paid for and have no record.
@pytest.mark.parametrize(("name", "dead"), [("sums", "good: "), ("doubts", "judge: ")])
def test_live_asks_again_what_earlier_runs_asked_but_nothing_twice_in_its_own(
    toys: Toys, server: ToyServer, name: str, dead: str
) -> None:
    toys.run(name, out="first")
    first = server.prompts()
    server.asked.clear()
    with server.failing(dead, 401, after=5):
        assert toys.run(name, "--mode", "live").code == 4
    assert toys.again("resume").code == 0
    asked = server.prompts()
    assert asked.keys() == first.keys() and toys.answers() == toys.answers("first")
    asked.subtract((each.model, each.prompt) for each in server.refused)
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_strict_sends_nothing_and_takes_all_that_is_there(toys: Toys, server: ToyServer, name: str) -> None:
    toys.run(name, out="first")
    server.asked.clear()
    assert toys.run(name, "--mode", "strict", out="whole").code == 0
    assert toys.answers("whole") == toys.answers("first")
    done = toys.run(name, "--mode", "strict", "--limit", "10", out="more")
    assert done.code == 3 and server.asked == []
    assert toys.answers("more") == toys.answers("first")
    failures = toys.lines("failures", "more")
    # Of a conversation nothing is asked after what is missing.
    assert len(failures) == 2
    assert {line["status"] for line in failures} == {"not_cached"} and "is not in the cache" in failures[0]["error"]


def test_replay_sends_what_is_missing_and_no_more(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts", "--limit", "3", out="first")
    server.asked.clear()
    assert toys.run("doubts", "--limit", "5", "--mode", "replay", out="more").code == 0
    assert len(server.asked) == 12 and sum(line["cached"] for line in toys.lines(out="more")) == 9


def test_an_answer_of_one_form_is_found_by_another(toys: Toys, server: ToyServer) -> None:
    toys.run("sums", out="sums")
    server.asked.clear()
    toys.run("twins", out="twins")
    assert all("Please" in asked.prompt for asked in server.asked) and len(server.asked) == 8
    assert sum(line["cost"] for line in toys.lines(out="twins")) == pytest.approx(8 * COST)


def test_a_retried_conversation_takes_its_earlier_answers_from_its_records(toys: Toys, server: ToyServer) -> None:
    with server.failing("weak: Doubt 2: not 13. What is 2 "):
        toys.run("doubts", "--limit", "4", model="lab/weak")
    toys.forget_cache()
    server.asked.clear()
    assert toys.again("retry").code == 0
    (doubted,) = (asked for asked in server.asked if asked.model == "weak")
    assert doubted.texts == (
        "What is 2 + 10?",
        "12",
        "Doubt 1: not 12. What is 2 + 10?",
        "13",
        "Doubt 2: not 13. What is 2 + 10?",
    )
    assert len(server.asked) == 2


def test_other_parameters_are_other_answers(toys: Toys, server: ToyServer) -> None:
    for number, more in enumerate(((), ("--temperature", "0"), ("--max-tokens", "9"), ("--reasoning-effort", "low"))):
        assert toys.run("sums", "--limit", "1", *more, out=f"run{number}").code == 0
    assert len(server.asked) == 4
    assert len({line["keys"][0] for number in range(4) for line in toys.lines(out=f"run{number}")}) == 4


def test_cache_why_says_of_a_record_whether_its_call_is_stored(toys: Toys) -> None:
    toys.run("sums", out="sums")
    toys.run("doubts", out="doubts")
    (key,) = next(line["keys"] for line in toys.lines(out="sums") if line["id"] == "s2.0")
    done = toys.cli("cache", "why", "sums", "s2.0")
    assert done.out.splitlines()[0] == f"call {key}" and "hit: answered from the cache" in done.out
    assert toys.cli("cache", "why", "doubts", "d2/3").out.startswith("d2/3 of lab/good (ok): 2 of 2 calls are stored")
