"""Log-likelihoods of given answers: which one a model holds for the likeliest, from its server to the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

import millstream as ms
from millstream.bench.task.rows import TaskError, TaskRow
from millstream.engine.call import Reply, TokenLogprob
from millstream.engine.pairs import Pair
from millstream.fixtures.provider.completions import score_tokens, tokens_of

ROWS = 4
FILE = """
import millstream as ms

mine = ms.Task(
    data=[{"n": n, "options": ["red", "dark green", "blue"], "answer": n % 3} for n in range(ROWS)],
    prompt="The colour of {n} is",
    score=ms.loglikelihood("{options}", "{answer}"),
)
""".replace("ROWS", str(ROWS))
ROW = TaskRow("r", {"options": ["a", "bcdef"], "answer": "bcdef"}, "row 1")


def asked(provider: Provider, model: str, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", "mine.py", "--model", model, *where, "--out", "run", *more)


def test_each_answer_is_weighed_by_one_call_and_the_likeliest_is_scored(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    done = cli(*asked(provider, "vllm-completions/open"))
    assert done.code == 0, done.err
    assert provider.calls() == 3 * ROWS
    for record in lines_of(tmp_path / "run/records.jsonl"):
        prompt = record["prompt"]
        sums = []
        for line, option in zip(record["text"].splitlines(), record["row"]["options"], strict=True):
            tokens = tokens_of(f"{prompt} {option}")
            behind = len(tokens_of(prompt))
            rows = score_tokens("open", tokens, 1)
            sums.append(sum(row.logprob for row in rows[behind:] if row.logprob is not None))
            assert json.loads(line) == {"choice": option, "logprob": pytest.approx(sums[-1])}
        by_length = [value / len(option) for value, option in zip(sums, record["row"]["options"], strict=True)]
        assert record["read"] == "ABC"[sums.index(max(sums))]
        assert record["scores"] == {
            "sum": float(sums.index(max(sums)) == record["row"]["answer"]),
            "by_length": float(by_length.index(max(by_length)) == record["row"]["answer"]),
        }
        assert record["score"] == record["scores"]["sum"] and len(record["keys"]) == 3
    before = scores_of(tmp_path / "run")
    for command in (("resume", "run"), ("verify", "run"), ("score", "run"), ("score", "run", "--task", "mine.py")):
        done = cli(*command)
        assert done.code == 0 and provider.calls() == 3 * ROWS, done.err
    assert scores_of(tmp_path / "run") == before


def test_another_protocol_is_refused_in_a_line_before_anything_is_sent(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    done = cli(*asked(provider, "sim/open"))
    assert (done.code, done.err.count("\n"), provider.calls()) == (2, 1, 0)
    assert "sim/open gives no log-probabilities of given answers (its protocol is openai): expected" in done.err
    planned = cli("plan", "mine.py", "--model", "vllm-completions/open", "--base-url", provider.base_url)
    assert planned.code == 0 and "a call weighs one answer of a row" in planned.out, planned.err


def echoed(*rows: tuple[str, float]) -> Reply:
    return Reply("", logprobs=tuple(TokenLogprob(token, logprob) for token, logprob in rows))


def test_the_score_follows_a_distribution_made_by_hand_as_a_sum_and_by_length() -> None:
    one = ms.loglikelihood("{options}", "{answer}")
    nan = float("nan")
    short = echoed(("Q", nan), (":", -9.0), (" a", -2.0), ("x", -0.1))
    long = echoed(("Q", nan), (":", -9.0), (" bc", -1.0), ("def", -2.0), ("x", -0.1))
    found = one.score(one.weighed("Q:", ROW, [short, long]), ROW)
    # -2.0 of 1 character against -3.0 of 5.
    assert (found.value, found.read) == (0.0, "A")
    assert {name: part.value for name, part in found.parts.items()} == {"sum": 0.0, "by_length": 1.0}
    unweighed = one.score(one.weighed("Q:", ROW, [short, Reply("a")]), ROW)
    assert unweighed.value is None and "it must take echo and logprobs together" in str(unweighed.problem)
    assert [call.input for call in one.calls("Q: ", ROW, Pair("a/m", None), 0)] == ["Q: a", "Q: bcdef"]


def test_it_stands_alone_and_needs_a_prompt_of_one_text() -> None:
    one = ms.loglikelihood("{options}", "{answer}")
    wrong: tuple[dict[str, Any], ...] = ({"score": {"a": one, "b": ms.match("x")}}, {"system": "Be short."})
    for fields in wrong:
        with pytest.raises(TaskError, match="loglikelihood: expected it as the only scorer"):
            ms.Task(**{"data": [dict(ROW.data)], "prompt": "Q:", "score": one, **fields})
    with pytest.raises(TaskError, match="expected a prompt of one text"):
        one.calls((ms.Message("user", "Q:"),), ROW, Pair("a/m", None), 0)
