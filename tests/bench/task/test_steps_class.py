"""How a benchmark of several steps is declared: what a class must have, and which of a file's is meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, scores_of
from toy_outside import KEY, Toys, ToyServer


@pytest.fixture
def toys(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toys]:
    monkeypatch.setenv("LAB_KEY", KEY)
    with ToyServer() as server:
        yield Toys(cli, server, tmp_path)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("class A(ms.Benchmark):\n    data = []\n    def run(self, item, ask): ...", "async def run(self, item, ask)`"),
        ("class A(ms.Benchmark):\n    data = []\n    async def run(self, item, ask): ...", "a method `def score("),
        ("class A(ms.Benchmark):\n    async def run(self, item, ask): ...", "A: data: expected it, as data = "),
        ("class A(ms.Benchmark):\n    data = []\n    async def runs(self, item, ask): ...", "`async def run(self, "),
        (
            "class A(ms.Benchmark):\n    data = [{'a': 1}]\n    step_max = 5\n    score = ms.match('{a}')\n"
            "    async def run(self, item, ask): ...",
            "A: unknown attribute step_max (nearest: steps_max): give one of your own another name",
        ),
        (
            "class A(ms.Benchmark):\n    data = [{'a': 1}]\n    steps_max = 0\n    score = ms.match('{a}')\n"
            "    async def run(self, item, ask): ...",
            "A: steps_max: expected a whole number from 1 to 100,000, got 0",
        ),
        (
            "class A(ms.Benchmark):\n    data = [{'a': 1}]\n    models = {'a/b': 'c/d'}\n"
            "    async def run(self, item, ask): ...\n    score = ms.match('{a}')",
            "A: models: expected names with models",
        ),
        (
            "class A(ms.Benchmark):\n    data = [{'a': 1}]\n    def __init__(self, n): ...\n"
            "    async def run(self, item, ask): ...\n    score = ms.match('{a}')",
            "make an instance in the file",
        ),
        ("class A(ms.Benchmark):\n    data = [{'a': 1}]\n    trials = 0\n    score = ms.match('{a}')\n"
         "    async def run(self, item, ask): ...", "A: trials: expected a whole number from 1"),
    ],
)  # fmt: skip
def test_a_class_that_cannot_be_run_is_refused_in_a_line(
    cli: CommandLine, tmp_path: Path, text: str, error: str
) -> None:
    (tmp_path / "a.py").write_text(f"import millstream as ms\n\n{text}\n")
    done = cli("plan", "a.py", "--model", "sim/open", "--base-url", "http://127.0.0.1:9/v1")
    assert done.code == 2 and error in done.err and done.err.count("\n") == 1, done.err


def test_instances_of_a_file_stand_in_place_of_their_class_and_one_is_chosen_by_name(toys: Toys) -> None:
    head = """
class Base(ms.Benchmark):
    data = [{"n": 1}]

    def __init__(self, count):
        self.count = count

    async def run(self, item, ask):
        return [(await ask("What is 1 + 10?")).text for _ in range(self.count)]

    def score(self, item, result):
        return len(result)

few, many = Base(1), Base(3)
"""
    (toys.home / "two.py").write_text("import millstream as ms\n" + head)
    assert toys.run("two.py", out="both").code == 0
    for name, mean in (("few", 1), ("many", 3)):
        assert scores_of(toys.home / "both" / name)[name]["models"]["lab/good"]["mean"] == mean
    assert toys.run("two.py:many").code == 0
    assert scores_of(toys.home / "run")["many"]["models"]["lab/good"]["mean"] == 3
    specification = toys.file("manifest.json")["specification"]
    assert specification["parameters"] == {"steps_max": 20, "count": 3}
    assert toys.cli("plan", "two.py:few", "--model", "lab/good", "--config", "lab.toml").code == 0
    load = toys.cli("load", "lab/good", "--dataset", "two.py:few", "--config", "lab.toml", "--out", "l", "--rate", "1")
    assert load.code == 2 and "the prompts of few are made by its run()" in load.err


def test_parameters_of_the_run_the_class_and_a_call_are_those_that_are_sent(toys: Toys) -> None:
    (toys.home / "own.py").write_text("""
import millstream as ms

class Own(ms.Benchmark):
    data = [{"n": 1}]
    max_tokens = 9
    temperature = [0.5, "none"]
    models = {"reader": "lab/judge"}

    async def run(self, item, ask):
        await ask("What is 1 + 10?", stop=["x"])
        await ask("What is 2 + 10?", model="reader", temperature=0.3)
        return (await ask("What is 3 + 10?", max_tokens=7)).text

    def score(self, item, result):
        return True
""")
    done = toys.run("own.py", "--reasoning-effort", "low", "high")
    assert done.code == 0, done.err
    names = ("temperature", "reasoning_effort", "max_tokens", "max_completion_tokens", "stop")
    sent = [
        (asked.prompt[8], *(asked.body[name] for name in names if name in asked.body)) for asked in toys.server.asked
    ]
    efforts = ("low", "high")
    assert sorted(sent, key=str) == sorted(
        [
            ("2", 0.3, 9),
            *(("1", temperature, effort, 9, ["x"]) for temperature in (0.5,) for effort in efforts),
            *(("1", effort, 9, ["x"]) for effort in efforts),
            *(("3", temperature, effort, 7) for temperature in (0.5,) for effort in efforts),
            *(("3", effort, 7) for effort in efforts),
        ],
        key=str,
    )
    assert set(scores_of(toys.home / "run")["Own"]["models"]) == {
        *("lab/good @ 0.5, low", "lab/good @ 0.5, high", "lab/good @ low", "lab/good @ high")
    }
    record = next(line for line in toys.lines() if line["temperature"] == 0.5)
    assert [call.get("parameters", {}) for call in record["transcript"]["calls"]] == [
        *({"stop": ["x"]}, {"temperature": 0.3}, {"max_tokens": 7})
    ]
