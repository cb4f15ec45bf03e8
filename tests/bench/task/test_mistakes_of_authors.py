"""What an author's slips in a benchmark of several steps lead to: a line at the start, or a failure, and no figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from toy_outside import KEY, Toys, ToyServer

HEAD = "import millstream as ms\n\nclass Own(ms.Benchmark):\n    data = [dict(id=f'n{n}', n=n) for n in range(5)]\n"
RUN = """
    async def run(self, item, ask):
        return (await ask(f"What is {item['n']} + 10?")).text
"""
SCORE = """
    def score(self, item, result):
        return True
"""


@pytest.fixture
def toys(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toys]:
    monkeypatch.setenv("LAB_KEY", KEY)
    with ToyServer() as server:
        toys = Toys(cli, server, tmp_path)
        try:
            yield toys
        finally:
            toys.end()


def written(toys: Toys, text: str) -> str:
    (toys.home / "own.py").write_text(text)
    return "own.py"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            HEAD + "    step_max = 3\n" + RUN + SCORE,
            "Own: unknown attribute step_max (nearest: steps_max)",
        ),
        (HEAD + "    trails = 3\n" + RUN + SCORE, "Own: unknown attribute trails (nearest: trials)"),
        (HEAD + SCORE, "Own: expected a method `async def run(self, item, ask)`"),
        (HEAD + RUN.replace("item, ask", "item") + SCORE, "Own: expected a method `async def run(self, item, ask)`"),
        (HEAD + RUN + SCORE.replace("item, ", ""), "Own: expected a method `def score(self, item, result)`"),
        (HEAD + RUN + SCORE.replace("def", "async def"), "Own: score: expected `def`, got `async def`"),
        (
            HEAD + "    tools = print\n" + RUN + SCORE,
            "Own: tools: expected a list of functions and ms.mcp(…), got <built-in",
        ),
        ("import millstream as ms\n\nclass Own(ms.Benchmark):\n" + RUN + SCORE, "Own: data: expected it"),
    ],
)
def test_a_class_that_cannot_run_as_written_is_refused_before_a_call(toys: Toys, text: str, line: str) -> None:
    done = toys.run(written(toys, text))
    assert done.code == 2 and line in done.err and "Traceback" not in done.err
    assert not toys.server.prompts()


def test_names_of_an_authors_own_are_allowed(toys: Toys) -> None:
    more = "    rounds = 2\n    limit = 7\n    _step_max = 3\n    steps = property(lambda self: 1)\n"
    assert toys.run(written(toys, HEAD + more + RUN + SCORE)).code == 0


def test_a_call_that_is_not_awaited_is_named_and_scores_nothing(toys: Toys) -> None:
    text = HEAD + RUN.replace("(await ask(f\"What is {item['n']} + 10?\")).text", "str(ask('?'))") + SCORE
    done = toys.run(written(toys, text))
    assert done.code == 3 and "never awaited" not in done.err
    assert [line["status"] for line in toys.lines("failures")] == ["raised"] * 5
    assert "run() did not await 1 call of ask: write `await ask(…)`" in toys.lines("failures")[0]["error"]


def test_the_text_of_a_call_that_was_not_awaited_is_explained(toys: Toys) -> None:
    toys.run(written(toys, HEAD + RUN.replace("(await ask", "(ask") + SCORE))
    error = toys.lines("failures")[0]["error"]
    assert error.endswith("has no attribute 'text': write `await ask(…)` (own.py line 7)"), error


def test_an_item_without_a_call_has_no_score(toys: Toys) -> None:
    done = toys.run(written(toys, HEAD + "\n    async def run(self, item, ask):\n        return 'yes'\n" + SCORE))
    assert done.code == 3 and "run() ended without a call" in toys.lines("failures")[0]["error"]
    assert toys.lines() == []
    assert "correct the code and run it with another --out: what was answered comes from the cache" in done.out
    assert "0 answers, 0 of them from the cache" in done.out


def test_a_main_score_that_is_another_one_in_some_items_is_told(toys: Toys) -> None:
    score = SCORE.replace("True", "{'a': 1, 'b': 0} if item['n'] < 2 else {'b': 1}")
    done = toys.run(written(toys, HEAD + RUN + score))
    assert done.code == 3 and "its main score mixes several (a, b)" in done.out


def test_what_an_authors_code_prints_is_no_part_of_the_result(toys: Toys) -> None:
    text = HEAD + RUN.replace("        return", "        print('heard', item['n'])\n        return") + SCORE
    done = toys.run(written(toys, text), "--json")
    assert json.loads(done.out)["exit_code"] == 0 and "heard 4" in done.err
