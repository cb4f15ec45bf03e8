"""Kept answers that are read once more: by other judges (`judge`) and by people (`review`)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable

from command_line import Done
from toy_outside import COST, Toys, ToyServer


def judge(toys: Toys, *more: str) -> Done:
    sent = ("--config", "lab.toml", "--cache", "cache", "--concurrency", "4", "--no-progress")
    return toys.cli("judge", "run", *sent, *more)


def label(toys: Toys, rater: str, label_of: Callable[[dict[str, str]], str]) -> None:
    """Write the sample of a person and fill it in."""
    file = toys.home / f"{rater}.csv"
    assert toys.cli("review", "run", "--rater", rater, "--csv", str(file)).code == 0
    with file.open(newline="") as written:
        rows = list(csv.DictReader(written))
    with file.open("w", newline="") as filled:
        writer = csv.DictWriter(filled, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": label_of(row)} for row in rows)
    done = toys.cli("review", "run", "--rater", rater, "--csv", str(file), "--json")
    assert done.code == 0, done.err


def is_right(row: dict[str, str]) -> str:
    return "Y" if int(row["text"]) == int(row["question"].partition(" ")[0]) + 10 else "N"


def test_other_judges_read_every_kept_answer_and_no_model_is_asked_again(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts", model="lab/good lab/weak")
    records, manifest = toys.lines(), toys.file("manifest.json")
    server.asked.clear()
    done = judge(toys, "--judge", "lab/lax", "lab/stern")
    assert done.code == 0, done.err
    assert {asked.model for asked in server.asked} == {"lax", "stern"}
    judged = toys.lines("judgements")
    assert {(line["judge"], line["model"], line["id"], line["verdict"]) for line in judged} == {
        (name, line["model"], line["id"], verdict)
        for name, verdict in (("lab/lax", "yes"), ("lab/stern", "no"))
        for line in records
    }
    assert len(judged) == 2 * 48 and sum(line["cost"] for line in judged) == COST * len(server.asked)
    assert (toys.lines(), toys.file("manifest.json")) == (records, manifest)
    assert toys.file("judgements.json")["ended"] is not None


def test_judges_are_compared_over_the_answers_that_all_read(toys: Toys) -> None:
    toys.run("doubts", model="lab/weak")
    panel = json.loads(judge(toys, "--judge", "lab/lax", "lab/firm", "--json").out)["panel"]
    # Of the 24 answers one in three is right; `firm` judges as truly as the run's own judge.
    both = next(pair for pair in panel["pairs"] if {pair["first"], pair["second"]} == {"lab/judge", "lab/lax"})
    assert (both["answers"], both["share"], both["table"]["counts"]) == (24, 8 / 24, [[8, 0], [16, 0]])
    values = {name: scores["lab/weak"]["right"]["value"] for name, scores in panel["scores"].items()}
    assert values == {"lab/judge": 8 / 24, "lab/firm": 8 / 24, "lab/lax": 1, "majority": 8 / 24}


def test_a_judgement_that_is_there_is_not_asked_for_again_and_another_judge_can_come_later(
    toys: Toys, server: ToyServer
) -> None:
    toys.run("doubts", model="lab/weak")
    judge(toys, "--judge", "lab/lax")
    first = toys.lines("judgements")
    toys.forget_cache()
    server.asked.clear()
    assert judge(toys, "--judge", "lab/lax").code == 0 and server.asked == []
    assert judge(toys, "--judge", "lab/lax", "lab/stern").code == 0
    assert {asked.model for asked in server.asked} == {"stern"} and len(server.asked) == 24
    assert toys.lines("judgements")[:24] == first
    compared = judge(toys)
    assert compared.code == 0 and "lab/lax, lab/stern" in compared.out and len(server.asked) == 24


def test_a_judge_that_fails_has_lines_of_its_own_and_the_next_command_mends_them(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts")
    with server.failing("lax: Answer 2: 3 "):
        assert judge(toys, "--judge", "lab/lax").code == 3
    (failure,) = toys.lines("judgements-failures")
    assert (failure["id"], failure["judge"], failure["status"]) == ("d3/2", "lab/lax", "rejected")
    assert len(toys.lines("judgements")) == 23
    server.asked.clear()
    assert judge(toys, "--judge", "lab/lax").code == 0
    assert server.prompts() == {("lax", "Answer 2: 3 + 10 is 13. Say yes or no."): 1}
    assert len(toys.lines("judgements")) == 24 and toys.lines("judgements-failures") == []


def test_a_plan_of_judging_counts_its_calls_and_sends_nothing(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts", model="lab/weak")
    judge(toys, "--judge", "lab/lax")
    server.asked.clear()
    plan = json.loads(judge(toys, "--judge", "lab/lax", "lab/stern", "--plan", "--json").out)
    assert server.asked == []
    assert {row["lane"]: row["calls"] for row in plan["lanes"] if row["calls"][1]} == {"lab/stern": [24, 24]}
    low, high = plan["cost"]
    # One token of output at least, five at most, at ten cents each; prompts of about ten tokens.
    assert 24 * 0.1 < low < high < 24 * (0.5 + 2)


def test_judging_stops_at_its_own_budget(toys: Toys, server: ToyServer) -> None:
    toys.run("doubts")
    server.asked.clear()
    assert judge(toys, "--judge", "lab/lax", "--max-cost", "12").code == 4
    assert 0 < COST * len(server.asked) <= 12
    assert judge(toys, "--judge", "lab/lax", "--max-cost", "500").code == 0
    assert len(toys.lines("judgements")) == len(server.asked) == 24


def test_people_agree_with_the_judge_as_far_as_they_label_alike(toys: Toys) -> None:
    toys.run("doubts", model="lab/good lab/weak")
    label(toys, "ann", is_right)
    found = json.loads(toys.cli("review", "run", "--rater", "ann", "--json").out)
    assert found["labelled"] == 48
    assert found["readings"]["judge"]["confusion"] == {
        "right": {"right": 32, "wrong": 0},
        "wrong": {"right": 0, "wrong": 16},
    }
    # Who says yes to everything agrees in two of three.
    label(toys, "bob", lambda row: "Y")
    found = json.loads(toys.cli("review", "run", "--rater", "bob", "--json").out)
    assert found["readings"]["judge"]["confusion"]["right"] == {"right": 32, "wrong": 16}


def test_labels_change_neither_records_nor_scores_and_a_blank_is_no_label(toys: Toys) -> None:
    toys.run("doubts")
    before = {name: (toys.home / "run" / name).read_bytes() for name in ("records.jsonl", "scores.json")}
    label(toys, "ann", lambda row: is_right(row) if row["id"].endswith("/1") else "")
    assert {name: (toys.home / "run" / name).read_bytes() for name in before} == before
    assert json.loads(toys.cli("review", "run", "--rater", "ann", "--json").out)["labelled"] == 8
    assert toys.cli("verify", "run").code == 0


def test_a_benchmark_without_labels_or_judges_says_so(toys: Toys) -> None:
    toys.run("sums")
    for done in (toys.cli("review", "run"), judge(toys, "--judge", "lab/lax")):
        assert done.code == 2 and "Sums" in done.err.splitlines()[-1]
