"""What a person can get wrong with conversations: one line that says what to do, the right code, and nothing sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine

RUN = ("run", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--out", "run")

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no judge": (("run", "chameleon", "--model", "sim/open", "--out", "run"), "--judge: expected"),
    "a search engine that nobody knows": ((*RUN, "--search", "bing"), "no search engine 'bing'; known are brave"),
    "a search engine's address": ((*RUN, "--search", "http://a"), "expected a search engine, such as brave"),
    "no key for the search": ((*RUN, "--search", "brave"), "needs a key: set BRAVE_API_KEY or BRAVE_SEARCH_API_KEY"),
    "no address for the search": ((*RUN, "--search", "searxng"), "has no address: set SEARXNG_BASE_URL"),
    "no id for the search": ((*RUN, "--search", "google"), "needs an id: set GOOGLE_CSE_ID"),
    "a corpus with another engine": ((*RUN, "--search", "brave", "--corpus", "a"), "belongs to --search corpus"),
    "no corpus there": ((*RUN, "--corpus", "nowhere"), "--corpus"),
    "an empty corpus": ((*RUN, "--corpus", "empty"), "--corpus"),
    "queries of nobody's": ((*RUN, "--queries-by", "sim/open"), "--queries-by belongs to --retrieval shared"),
    "a retrieval": ((*RUN, "--retrieval", "none"), "expected one of own, shared"),
    "an order": ((*RUN, "--order", "random"), "expected one of written, shuffled, grouped"),
    "a judge's prompt": ((*RUN, "--judge-prompt", "short"), "expected one of extended, paper"),
    "no turns": ((*RUN, "--turns", "0"), "--turns"),
    "half a turn": ((*RUN, "--turns", "1.5"), "--turns"),
    "too many pages": ((*RUN, "--pages", "101"), "--pages"),
    "no conversations": ((*RUN, "--conversations", "0"), "--conversations"),
    "too small a window": ((*RUN, "--window", "10"), "--window"),
    "a snapshot to record": ((*RUN, "--snapshot", "a.snapshot", "--mode", "record"), "snapshot"),
    "a snapshot to ask anew": ((*RUN, "--snapshot", "a.snapshot", "--mode", "live"), "snapshot"),
    "no snapshot there": ((*RUN, "--snapshot", "nowhere.snapshot"), "a file that `millstream cache export` wrote"),
    "what is no snapshot": ((*RUN, "--snapshot", "list.json", "--mode", "strict"), "list.json is no snapshot"),
    "an age without a unit": ((*RUN, "--max-age", "12"), "an age with its unit"),
    "a host that is none": ((*RUN, "--allow-host", "http://a/"), "a host as NAME"),
    "a host of colons": ((*RUN, "--allow-host", ":::"), "--allow-host ':::' must be NAME, NAME:PORT"),
    "a data set that is not there": ((*RUN, "--dataset", "nowhere.json"), "nowhere.json"),
    "an empty data set": ((*RUN, "--dataset", "list.json"), "expected at least one conversation"),
    "a data set of the other benchmark": ((*RUN, "--dataset", "issue.json"), "issue.json"),
    "a table of sums": ((*RUN, "--dataset", "sums.csv"), "got the columns id, question, answer, kind"),
    "a plan over a table of cities": (
        ("plan", *RUN[1:6], "--dataset", "cities.csv"),
        "cities.csv line 1: expected a conversation a row, in the columns question_1, question_2, …",
    ),
    "rows of a task": ((*RUN, "--dataset", "rows.jsonl"), "rows.jsonl line 1: expected a conversation, with topic and"),
    "a reading": ((*RUN, "--confidence", "guess"), "expected one of rubric, number"),
}  # fmt: skip
# What belongs to another benchmark.
OTHERS: dict[str, tuple[tuple[str, ...], str]] = {
    "an option of the other benchmark": ((*RUN, "--templates", "2"), "--templates belongs to `run millstone`"),
    "one of ours with the other": (
        ("run", "millstone", "--model", "sim/open", "--out", "run", "--turns", "2"),
        "--turns belongs to `run chameleon`",
    ),
    "MillStone's reading of our records": (("score", "theirs", "--stance", "paper"), "reads records of MillStone"),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_in_one_line_before_anything_is_sent(cli: CommandLine, tmp_path: Path, case: str) -> None:
    assert_refused(cli, tmp_path, *WRONG[case])


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.parametrize("case", OTHERS)
def test_what_belongs_to_another_benchmark_is_refused(cli: CommandLine, tmp_path: Path, case: str) -> None:
    assert_refused(cli, tmp_path, *OTHERS[case])


def assert_refused(cli: CommandLine, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "sums.csv").write_text("id,question,answer,kind\n1,What is 19 * 74?,1406,product\n")
    (tmp_path / "cities.csv").write_text("name,city\nAda,London\n")
    (tmp_path / "rows.jsonl").write_text('{"question": "What is 2 + 2?", "answer": "4"}\n')
    issue = {"question": "Q?", "pros": ["a"], "cons": ["b"], "sources": {}, "paraphrases": []}
    (tmp_path / "issue.json").write_text(json.dumps(issue))
    (tmp_path / "theirs").mkdir()
    place = {"id": "a/1", "conversation": "a", "turn": 1, "model": "x/y"}
    line = {**place, "status": "ok", "stance": "critical", "retrieved": [], "cited": [], "text": "t"}
    (tmp_path / "theirs/records.jsonl").write_text(json.dumps(line) + "\n")
    done = cli(*arguments)
    assert done.code == 2, done
    *notes, told = done.err.splitlines()
    assert told.startswith("millstream: ") and said in told, done.err
    assert all("no --dataset" in one or "context window of" in one or "no --corpus" in one for one in notes)
    assert done.out == "" and "Traceback" not in done.err
    assert not (tmp_path / "run").exists()
