"""What a run of an author's benchmark asks and writes, whatever its form: one call an item, pairs, conversations."""

from __future__ import annotations

import json

import pytest
from toy_outside import COST, Toys, ToyServer

FORMS = ("sums", "twins", "doubts")


def test_a_run_writes_its_files_and_prints_a_row_a_model(toys: Toys) -> None:
    done = toys.run("sums", model="lab/good lab/poor")
    assert done.code == 0, done.err
    names = {path.name for path in (toys.home / "run").iterdir() if not path.name.startswith(".")}
    assert names == {"records.jsonl", "failures.jsonl", "manifest.json", "scores.json"}
    assert [line["id"] for line in toys.answers()] == 2 * [f"s{n}.0" for n in range(8)]
    assert toys.lines("failures") == []
    assert toys.scores() == {"lab/good": 1.0, "lab/poor": 0.5}
    heading, good, poor, *_ = done.out.splitlines()
    assert heading.split()[:2] == ["model", "score"]
    assert (good.split()[:2], poor.split()[:2]) == (["lab/good", "1.000"], ["lab/poor", "0.500"])


def test_a_record_has_what_the_author_and_what_the_framework_know(toys: Toys, server: ToyServer) -> None:
    toys.run("sums", "--temperature", "0.5", "--max-tokens", "9", model="lab/poor")
    line = next(line for line in toys.lines() if line["id"] == "s3.0")
    plain = ("item", "step", "group", "text", "model", "temperature", "status", "number", "right", "attempts", "served")
    assert [line[name] for name in plain] == ["s3", 1, "odd", "14", "lab/poor", 0.5, "ok", 3, False, 1, "poor"]
    assert (line["usage"], line["cost"], line["cached"]) == ({"input": 10, "output": 5}, COST, False)
    assert len(line["keys"]) == 1 and line["latency_ms"] > 0
    (body,) = (asked.body for asked in server.asked if asked.prompt == "What is 3 + 10?")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("poor", 0.5, 9)


@pytest.mark.parametrize(("name", "lines"), [("sums", 8), ("twins", 16), ("doubts", 24)])
def test_the_manifest_says_what_was_asked_and_how_it_ended(toys: Toys, name: str, lines: int) -> None:
    assert toys.run(name, "--temperature", "0", "1").code == 0
    manifest = toys.file("manifest.json")
    specification = manifest["specification"]
    assert (specification["benchmark"], specification["lines"]) == (name, lines)
    assert (specification["models"], specification["temperatures"]) == (["lab/good"], [0.0, 1.0])
    assert (manifest["options"][name]["limit"], manifest["options"]["sending"]["concurrency"]) == (8, 4)
    assert manifest["started"] <= manifest["ended"]
    assert (manifest["maybe_billed_pending"], manifest["in_flight_at_kills"]) == (0, 0)
    for row, temperature in zip(manifest["counts"], (0.0, 1.0), strict=True):
        assert (row["model"], row["temperature"], row["ok"], row["pending"]) == ("lab/good", temperature, lines, 0)
        own = [line for line in toys.lines() if line["temperature"] == temperature]
        assert row["cost"] == pytest.approx(sum(line["cost"] for line in own))
        assert row["usage"] == {"input": 10 * lines, "output": 5 * lines}


def test_the_summary_as_json_agrees_with_the_files(toys: Toys, server: ToyServer) -> None:
    with server.failing("poor: What is 3"):
        done = toys.run("sums", "--json", model="lab/good lab/poor")
    assert done.code == 3
    (summary,) = json.loads(done.out)["runs"]
    assert (summary["answered"], summary["failed"], summary["pending"], summary["already"]) == (15, 1, 0, 0)
    assert summary["counts"] == toys.file("manifest.json")["counts"]
    assert summary["scores"] == toys.file("scores.json")
    assert summary["exit_code"] == 3 and summary["signal"] is None and summary["stops"] == []
    assert summary["folder"] == str(toys.home / "run")


@pytest.mark.parametrize("name", FORMS)
def test_how_many_calls_are_in_flight_changes_no_answer_and_no_score(toys: Toys, server: ToyServer, name: str) -> None:
    ends = []
    for concurrency in ("1", "16"):
        server.delay_s = 0.0 if concurrency == "1" else 0.01
        done = toys.run(name, "--concurrency", concurrency, model="lab/weak lab/poor", out=concurrency)
        assert done.code == 0, done.err
        ends.append((toys.answers(concurrency), toys.file("scores.json", concurrency), server.prompts()))
        toys.forget_cache()
        server.asked.clear()
    assert ends[0] == ends[1]


def test_steps_of_a_conversation_are_written_in_order_whoever_runs_beside(toys: Toys) -> None:
    toys.run("doubts", "--concurrency", "16", model="lab/good lab/weak")
    for model in ("lab/good", "lab/weak"):
        for n in range(8):
            own = [line for line in toys.lines() if (line["model"], line["item"]) == (model, f"d{n}")]
            assert [(line["id"], line["step"]) for line in own] == [(f"d{n}/{step}", step) for step in (1, 2, 3)]


def test_a_conversation_repeats_what_was_answered(toys: Toys, server: ToyServer) -> None:
    assert toys.run("doubts", "--limit", "3", model="lab/weak").code == 0
    doubt = "Doubt {}: not {}. What is 2 + 10?"
    (whole,) = (asked.texts for asked in server.asked if len(asked.texts) == 5 and asked.texts[1] == "12")
    assert whole == ("What is 2 + 10?", "12", doubt.format(1, 12), "13", doubt.format(2, 13))
    lines = [line for line in toys.answers() if line["item"] == "d2"]
    assert [(line["text"], line["verdict"], line["right"]) for line in lines] == [
        ("12", "yes", True),
        ("13", "no", False),
        ("14", "no", False),
    ]
    assert toys.scores() == {"lab/weak": pytest.approx(1 / 3)}


def test_a_step_costs_what_the_model_and_its_judge_cost(toys: Toys, server: ToyServer) -> None:
    done = toys.run("doubts")
    for line in toys.lines():
        assert (line["cost"], line["cost_judge"]) == (2 * COST, COST)
        assert line["usage"] == line["usage_judge"] == {"input": 10, "output": 5}
        assert (len(line["keys"]), line["attempts"], line["served_judge"]) == (2, 2, "judge")
    assert f"${COST * len(server.asked):.4f}" in done.out and len(server.asked) == 48
    judged = [asked.body for asked in server.asked if asked.model == "judge"]
    assert len(judged) == 24 and {(body["temperature"], body["max_tokens"]) for body in judged} == {(0.0, 5)}


def test_pairs_are_scored_as_pairs(toys: Toys) -> None:
    assert toys.run("twins", model="lab/good lab/poor").code == 0
    # `poor` is wrong about odd numbers where nobody says please.
    assert toys.scores() == {"lab/good": 1.0, "lab/poor": 0.5}
    assert {line["group"] for line in toys.lines()} == {f"pair {n}" for n in range(8)}


def test_trials_are_calls_and_records_of_their_own_and_the_item_counts_once(toys: Toys, server: ToyServer) -> None:
    assert toys.run("sums", "--limit", "3", "--trials", "4").code == 0
    assert sorted(server.prompts().values()) == [4, 4, 4]
    lines = toys.lines()
    assert len({key for line in lines for key in line["keys"]}) == len({line["id"] for line in lines}) == 12
    assert {line["item"] for line in lines} == {"s0", "s1", "s2"}
    assert sum(line["cost"] for line in lines) == pytest.approx(12 * COST)
    entry = toys.file("scores.json")["sums"]["models"]["lab/good"]
    toys.run("sums", "--limit", "3", out="once")
    # Repeats are no further items: the interval is as wide as over three.
    assert (entry["answers"], entry["ci95"]) == (
        12,
        toys.file("scores.json", "once")["sums"]["models"]["lab/good"]["ci95"],
    )


def test_more_trials_find_those_that_were_answered(toys: Toys, server: ToyServer) -> None:
    toys.run("sums", "--limit", "3", "--trials", "2", out="two")
    toys.run("sums", "--limit", "3", "--trials", "5", out="five")
    assert len(server.asked) == 15
    assert sorted(line["cached"] for line in toys.lines(out="five")) == 9 * [False] + 6 * [True]


def test_items_with_one_question_have_a_record_each_and_cost_what_was_sent(toys: Toys, server: ToyServer) -> None:
    assert toys.run("sums", "--same").code == 0
    lines = toys.lines()
    assert sorted(line["id"] for line in lines) == [f"s{n}.0" for n in range(8)]
    assert {line["text"] for line in lines} == {"10"} and toys.scores() == {"lab/good": 1.0}
    assert sum(line["cost"] for line in lines) == pytest.approx(COST * len(server.asked))
    assert sum(line["attempts"] for line in lines if not line["cached"]) == len(server.asked)


def test_the_options_of_the_author_choose_the_items(toys: Toys, server: ToyServer) -> None:
    assert toys.run("sums", "--offset", "3", "--limit", "2").code == 0
    assert sorted(server.prompts()) == [("good", "What is 3 + 10?"), ("good", "What is 4 + 10?")]
    assert [line["item"] for line in toys.answers()] == ["s3", "s4"]
    assert toys.file("manifest.json")["options"]["sums"]["offset"] == 3


def test_a_word_that_is_no_number_is_refused_before_anything_is_sent(toys: Toys, server: ToyServer) -> None:
    done = toys.run("sums", "--limit", "many")
    assert done.code == 2 and "--limit" in done.err and len(done.err.splitlines()[-1]) < 200
    assert server.asked == [] and not (toys.home / "run").exists()


def test_a_run_file_asks_the_same_as_the_command_line(toys: Toys, server: ToyServer) -> None:
    toys.run("sums", "--limit", "3", out="alone")
    asked = server.prompts()
    server.asked.clear()
    (toys.home / "sweep.toml").write_text(
        (toys.home / "lab.toml").read_text()
        + '[run]\nout = "sweep"\ncache = "other"\n[[run.sums]]\nname = "few"\nmodel = "lab/good"\nlimit = 3\n'
        '[[run.doubts]]\nname = "talks"\nmodel = "lab/good"\nlimit = 2\n'
    )
    assert toys.cli("run", "sweep.toml", "--no-report", "--no-progress").code == 0
    assert toys.answers("sweep/few") == toys.answers("alone") and len(toys.lines(out="sweep/talks")) == 6
    assert asked.items() <= server.prompts().items() and len(server.asked) <= 3 + 12
    assert (
        toys.file("manifest.json", "sweep/few")["specification"] == toys.file("manifest.json", "alone")["specification"]
    )


def test_help_lists_the_options_of_the_author(toys: Toys) -> None:
    done = toys.cli("run", "doubts", "--help")
    assert done.code == 0 and all(
        option in done.out for option in ("--offset N", "--judge PROVIDER/MODEL", "--lenient")
    )


def test_several_models_and_temperatures_are_asked_side_by_side_each_prompt_once(toys: Toys, server: ToyServer) -> None:
    done = toys.run("sums", "--temperature", "0", "1", model="lab/good lab/firm lab/poor")
    assert done.code == 0
    asked = [(asked.model, asked.body["temperature"], asked.prompt) for asked in server.asked]
    wanted = {(m, t, f"What is {n} + 10?") for m in ("good", "firm", "poor") for t in (0, 1) for n in range(8)}
    assert set(asked) == wanted and len(asked) == len(wanted) == 48
    rows = [f"lab/{model} @ {t}" for model in ("good", "firm", "poor") for t in (0, 1)]
    assert sorted(toys.scores()) == sorted(rows)
    assert {toys.scores()[f"lab/poor @ {t}"] for t in (0, 1)} == {0.5}
    # Side by side: the second model does not wait for the first to end.
    assert {asked.model for asked in server.asked[:24]} == {"good", "firm", "poor"}
