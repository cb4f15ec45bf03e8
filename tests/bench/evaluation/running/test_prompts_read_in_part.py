"""A server that reads prompts in part leaves no score, and every benchmark says so; an honest one is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, lines_of, scores_of
from recorder import Recorder, Sent, recording

from millstream.bench.millstone.work import SAMPLE

# Chameleon's pages are read in processes of their own.
pytestmark = [pytest.mark.needs_benchmark("millstone", "chameleon", "task"), pytest.mark.process]

JUDGED = {
    "stance": "supportive",
    "key_claims": ["x"],
    "contradictions_acknowledged": False,
    "rationale": "It clearly supports.",
    "confidence": 1.0,
}
TASK = """
import millstream as ms

words = "a word and another one " * 900
rows = [{"question": f"{number} " + words * (number + 1), "target": "A"} for number in range(4)]
task = ms.Task(name="long", data=rows, prompt="{question}", score=ms.match("{target}"))
"""
FEW = ("--conversations", "2", "--turns", "2")
WORKS: dict[str, tuple[str, ...]] = {
    "millstone": ("millstone", "--dataset", "long", "--trials", "1", "--templates", "2"),
    "chameleon": ("chameleon", "--judge", "sim/judge", "--search", "corpus", "--temperature", "0", *FEW),
    "task": ("long.py",),
}


def answer(sent: Sent, most: int) -> tuple[int, bytes]:
    messages, model = sent.json["messages"], sent.json["model"]
    prompt, tokens = messages[-1]["content"], sum(len(message["content"]) for message in messages) // 4
    text = "A" if "Sources:" not in prompt else "Yes. [1] [2]"
    if model == "judge":
        text = json.dumps(JUDGED)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens if model == "judge" else min(tokens, most), "completion_tokens": 5}
    return 200, json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def run(cli: CommandLine, server: Recorder, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    (tmp_path / "long.py").write_text(TASK)
    issue = json.loads((SAMPLE / "bottle-deposits.json").read_text())
    longer = {side: [argument + " And so on." * 300 for argument in issue[side]] for side in ("pros", "cons")}
    (tmp_path / "long").mkdir()
    (tmp_path / "long/bottle-deposits.json").write_text(json.dumps(issue | longer))

    def run(benchmark: str, most: int, *more: str) -> tuple[int, str]:
        server.react = lambda sent: answer(sent, most)
        where = ("--base-url", server.base_url, "--no-progress", "--out", "run", *more)
        done = cli("run", *WORKS[benchmark], "--model", "sim/m", *where)
        return done.code, done.out + done.err

    return run


def of(folder: Path, benchmark: str) -> tuple[dict[str, object], list[str], object]:
    """A model's entry, what was not measured, and its score."""
    scores = scores_of(folder)
    [part] = scores.values()
    entry = part["models"]["sim/m"]
    entry = entry["0"] if benchmark == "chameleon" else entry
    score = {"millstone": "om", "chameleon": "score", "task": "mean"}[benchmark]
    value = entry[score]["mean"] if benchmark == "chameleon" else entry[score]
    return entry, part["unmeasured"], value


@pytest.mark.parametrize(("benchmark", "most"), [("millstone", 700), ("chameleon", 4_096), ("task", 1_300)])
def test_a_server_that_cuts_leaves_no_score_and_everybody_says_so(
    cli: CommandLine, run: Callable[..., tuple[int, str]], tmp_path: Path, benchmark: str, most: int
) -> None:
    code, said = run(benchmark, most)
    entry, unmeasured, score = of(tmp_path / "run", benchmark)
    read = entry["read_in_part"]
    assert code == 3, said
    assert isinstance(read, dict) and read["is_unread"] and 2 * read["cut"] > read["prompts"]
    assert score is None
    [sentence] = [told for told in unmeasured if "in part" in told]
    assert sentence in said and "OLLAMA_CONTEXT_LENGTH" in sentence
    assert "in part" in (tmp_path / "run/report.html").read_text()
    assert cli("verify", "run").code == 0
    kept = (tmp_path / "run/scores.json").read_bytes()
    assert cli("score", "run").code == 3 and (tmp_path / "run/scores.json").read_bytes() == kept
    literal = cli("score", "run", "--read", "literal", "--json")
    assert literal.code == 0 and (tmp_path / "run/scores.json").read_bytes() == kept
    assert "in part" in literal.out and "has no score: the server" not in literal.out
    assert cli("report", "run", "--read", "literal", "--out", "page").code == 0


def test_a_run_with_the_literal_reading_has_its_score_and_a_remark(
    run: Callable[..., tuple[int, str]], cli: CommandLine, tmp_path: Path
) -> None:
    code, said = run("chameleon", 4_096, "--read", "literal")
    _, unmeasured, score = of(tmp_path / "run", "chameleon")
    assert (code, unmeasured) == (0, []) and score is not None and "in part" in said
    assert cli("verify", "run").code == 0


@pytest.mark.parametrize("benchmark", ["chameleon", "task"])
def test_an_honest_server_is_not_said_to_cut(
    run: Callable[..., tuple[int, str]], tmp_path: Path, benchmark: str
) -> None:
    code, said = run(benchmark, 1_000_000)
    entry, unmeasured, score = of(tmp_path / "run", benchmark)
    assert code == 0 and score is not None and "in part" not in said and unmeasured == []
    read = entry["read_in_part"]
    assert isinstance(read, dict) and read["cut"] == 0 and read["prompts"] == 4
    assert all(len(line["long_prompts"]) == 1 for line in lines_of(tmp_path / "run/records.jsonl"))
