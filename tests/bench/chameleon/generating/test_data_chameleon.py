"""`millstream data chameleon`: conversations written by a model, whole or gone on with, and never over a file."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, finish, run_command, start

from millstream.bench.chameleon.dataset import load
from millstream.bench.chameleon.generating.writing_report import RULES

TOPICS = {"Nutrition": ["Salt taxes", "Vegan diets", "Raw milk"], "Law": ["Juries", "Bail"]}


def words(provider: Provider, *more: str, model: str = "sim/sloppy-judge", out: str = "set.json") -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--out", out)
    return ("data", "chameleon", "--model", model, "--topics-from", "topics.json", *where, *more)


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps(TOPICS))
    return path


def test_every_topic_gets_its_conversation_and_a_bad_one_is_asked_again(
    cli: CommandLine, provider: Provider, topics: Path, tmp_path: Path
) -> None:
    done = cli(*words(provider))
    assert (done.code, done.err) == (0, ""), done
    dataset = load(tmp_path / "set.json")
    assert [(each.domain, each.topic) for each in dataset.conversations] == [
        (domain, topic) for domain, own in TOPICS.items() for topic in own
    ]
    assert {len(each.questions) for each in dataset.conversations} == {15}
    assert done.out.splitlines() == [
        "5 conversations on 5 topics in 2 domains, written by sim/sloppy-judge: 10 answers, 0 of them from the cache, "
        "no price",
        "not taken: 5 conversations, 0 lists of topics, and 0 topics that were nearly the same as another",
        # Of the simulated fifteen these are challenging: what if, counter-evidence (2), methodology, weigh, if were.
        "30 of 75 questions (40.0%) are challenging, 30 to 40% in 5 of 5 conversations, as the prompt asks; 75 "
        f"(100.0%) are open. By their words: {RULES}",
        f"digest {dataset.digest}",
        "set.json",
    ]
    assert provider.calls() == 10
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["set.json", "topics.json"]
    plan = ("plan", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--dataset", "set.json", "--json")
    assert json.loads(cli(*plan).out)["runs"][0]["conversations"] == 3 * 5


def test_a_file_that_is_there_is_never_overwritten_nor_anything_paid_for_that_it_could_not_take(
    cli: CommandLine, provider: Provider, topics: Path, tmp_path: Path
) -> None:
    (tmp_path / "set.json").write_text("[]")
    done = cli(*words(provider))
    assert done.code == 2 and "--out set.json exists, and this would have to be asked anew" in done.err
    assert (tmp_path / "set.json").read_text() == "[]" and provider.calls() == 0
    cli(*words(provider, out="other.json"))
    done = cli(*words(provider))
    assert done.code == 2 and "exists and holds something else" in done.err
    assert (tmp_path / "set.json").read_text() == "[]"


def test_an_interrupted_one_is_gone_on_with_and_the_second_time_all_comes_from_the_cache(
    provider: Provider, topics: Path, tmp_path: Path
) -> None:
    provider.set_faults("slow_body=0.3")
    process = start(tmp_path, *words(provider, "--concurrency", "1"))
    deadline = time.monotonic() + 20
    while provider.calls() < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130, done.err
    assert "stopped before the end: interrupted by SIGINT" in done.out and "nothing was written" in done.out
    assert not (tmp_path / "set.json").exists()
    assert 3 <= provider.calls() < 10
    provider.set_faults()
    done = run_command(tmp_path, *words(provider))
    assert done.code == 0, done.err
    assert provider.calls() == 10 and len(load(tmp_path / "set.json").conversations) == 5
    again = run_command(tmp_path, *words(provider, out="again.json"))
    assert again.code == 0 and "10 of them from the cache" in again.out
    assert (tmp_path / "set.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    assert provider.calls() == 10


def test_what_no_model_could_write_is_told_and_the_rest_is_written(
    cli: CommandLine, provider: Provider, topics: Path, tmp_path: Path
) -> None:
    provider.set_faults("rejected=400,at=1")
    done = cli(*words(provider, "--json", model="sim/judge"))
    told = json.loads(done.out)
    assert (done.code, told["exit_code"]) == (3, 3)
    (failed,) = told["failed"]
    assert failed["reason"].startswith("rejected") and told["conversations"] == 4
    assert len(load(tmp_path / "set.json").conversations) == 4
    assert told["digest"] == load(tmp_path / "set.json").digest


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no model": (("--out", "a.json"), "--model: expected who writes"),
    "no out": (("--model", "sim/open"), "--out: expected the data set file to write"),
    "no topics": (("--model", "sim/open", "--out", "a.json", "--topics", "0"), "--topics"),
    "both": (
        ("--model", "sim/open", "--out", "a", "--topics", "2", "--topics-from", "topics.json"),
        "give one of them",
    ),
    "no file": (("--model", "sim/open", "--out", "a", "--topics-from", "nowhere.json"), "got nothing there"),
    "a shape": (("--model", "sim/open", "--out", "a", "--topics-from", "list.json"), "expected an object of domains"),
    "a folder": (("--model", "sim/open", "--out", "."), "expected a file, got a folder"),
    "a model": (("--model", "open", "--out", "a.json"), "expected a model as provider/model"),
    "a key": (("--model", "openai/gpt-4o-mini", "--out", "a.json"), "OPENAI_API_KEY"),
    "a word too many": (("DIR", "--model", "sim/open", "--out", "a.json"), "one word too many"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_is_one_line_and_sends_nothing(
    cli: CommandLine, provider: Provider, topics: Path, tmp_path: Path, case: str
) -> None:
    (tmp_path / "list.json").write_text("[]")
    arguments, said = WRONG[case]
    done = cli("data", "chameleon", *arguments)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1, done
    assert said in done.err
    assert provider.calls() == 0
