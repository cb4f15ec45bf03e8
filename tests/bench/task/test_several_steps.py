"""A benchmark of several steps from its file to its report, over real HTTP: asked once, killed and resumed, planned,
proven, exported, read by people, scored again."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from command_line import CommandLine, Provider, lines_of, scores_of
from packed_items import packed_items
from toy_outside import COST, KEY, Spent, Toys, ToyServer

import millstream as ms
from millstream.bench.evaluation.page.items import Matrix
from millstream.bench.evaluation.page.runs import read_run
from millstream.bench.task.benchmark import BENCHMARK
from millstream.bench.task.messages import messages_in
from millstream.bench.task.score_table import manner_of
from millstream.engine.runs.run_folder import WrongSpecification, read_manifest

# The example of the documents.
DOUBT = """
import millstream as ms

class Doubt(ms.Benchmark):
    data = "facts.jsonl"
    steps_max = 10

    async def run(self, item, ask):
        talk = [ms.user(item["question"])]
        for doubt in ("Are you sure?", "I think that is wrong."):
            talk += [await ask(talk), ms.user(doubt)]
        return (await ask(talk)).text

    def score(self, item, result):
        return item["answer"] in result
"""
# The same for the toy models, which answer the last message alone.
TOY = """
import asyncio
import millstream as ms

ROWS = [{"id": f"n{n}", "n": n, "group": "odd" if n % 2 else "even"} for n in range(6)]

class Toy(ms.Benchmark):
    data = ROWS
    models = {"judge": "lab/judge"}

    async def run(self, item, ask):
        talk = [ms.user(f"What is {item['n']} + 10?")]
        for doubt in ("Are you sure?", "No."):
            talk += [await ask(talk), ms.user(f"{doubt} What is {item['n']} + 10?")]
        said = await ask(talk)
        read = await ask(f"Answer 3: {item['n']} + 10 is {said.text}. Say yes or no.", model="judge")
        return {"said": said.text, "judge": read.text}

    def score(self, item, result):
        return {"right": result["said"] == str(item["n"] + 10), "judge": result["judge"] == "yes"}
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


def written(toys: Toys, run: str, *, head: str = "", rows: int = 6, score: str = "return True", more: str = "") -> str:
    """Writes a benchmark whose `run` has this body, and returns its file."""
    body = "\n".join(f"        {line}" for line in run.strip().splitlines())
    (toys.home / "own.py").write_text(
        f"import asyncio\nimport millstream as ms\n{head}\nclass Own(ms.Benchmark):\n"
        f"    data = [dict(id=f'n{{n}}', n=n) for n in range({rows})]\n{more}\n"
        f"    async def run(self, item, ask):\n{body}\n\n    def score(self, item, result):\n        {score}\n"
    )
    return "own.py"


def facts(folder: Path) -> Path:
    rows = [{"question": f"What is {a} + {b}?", "answer": str(a + b)} for a in range(2, 5) for b in range(3)]
    (folder / "facts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "doubt.py").write_text(DOUBT)
    return folder


def test_the_conversation_of_the_documents_runs_from_the_command_line_and_from_python(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    facts(tmp_path)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report", "--out", "run")
    done = cli("run", "doubt.py", "--model", "sim/pupil", "sim/scholar", *where)
    assert done.code == 0, done.err
    assert provider.calls() == 2 * 9 * 3
    models = scores_of(tmp_path / "run")["Doubt"]["models"]
    namespace: dict[str, Any] = {"__name__": "doubt"}
    exec(DOUBT.replace("facts.jsonl", str(tmp_path / "facts.jsonl")), namespace)

    async def in_a_notebook() -> ms.Evaluation:
        return ms.evaluate(
            namespace["Doubt"],
            ["sim/pupil", "sim/scholar"],
            tmp_path / "python",
            base_url=provider.base_url,
            cache=str(tmp_path / "cache"),
            report=False,
        )

    evaluation = asyncio.run(in_a_notebook())
    assert provider.calls() == 2 * 9 * 3
    assert evaluation.name == "Doubt"
    assert {name: result.score.mean for name, result in evaluation.models.items()} == {
        name: entry["mean"] for name, entry in models.items()
    }
    record = next(evaluation.records())
    assert isinstance(record.transcript, object) and record.result == record.text


def test_every_verb_reads_a_benchmark_of_several_steps(toys: Toys) -> None:
    (toys.home / "toy.py").write_text(TOY)
    models = "lab/good lab/poor lab/weak"
    assert toys.run("toy.py", model=models).code == 0
    # The judge reads the three equal answers of two models once.
    assert len(toys.server.asked) == 3 * 6 * 4 - 3
    entries = scores_of(toys.home / "run")["Toy"]["models"]
    assert {name: entry["mean"] for name, entry in entries.items()} == {
        "lab/good": 1.0,
        "lab/poor": 0.5,
        "lab/weak": 0.0,
    }
    assert (
        entries["lab/poor"]["groups"]["even"]["mean"] == 1.0 and entries["lab/poor"]["scores"]["judge"]["mean"] == 0.5
    )
    record = next(line for line in toys.lines() if line["model"] == "lab/weak" and line["item"] == "n3")
    transcript = record["transcript"]
    assert [step.get("role", "subject") for step in transcript["calls"]][-1] == "judge"
    assert record["result"] == {"said": "15", "judge": "no"}
    assert record["cost"] == pytest.approx(4 * COST)
    assert sum(step["cost"] for step in transcript["calls"]) == pytest.approx(record["cost"])
    for words in (("verify", "run"), ("report", "run"), ("export", "run", "--parquet")):
        done = toys.cli(*words)
        assert done.code == 0, done.err
    page = json.dumps(packed_items(toys.home / "run/report.html")[1])
    assert "Are you sure? What is 3 + 10?" in page and "call 3: lab/weak" in page and "call 4: lab/judge" in page
    table = pq.read_table(toys.home / "run/records.parquet")
    assert json.loads(table["result"][0].as_py())["judge"] in ("yes", "no") and "transcript" in table.column_names
    done = toys.cli("review", "run", "--csv", "labels.csv", "--sample", "4")
    assert done.code == 0, done.err
    assert "Are you sure? What is" in (toys.home / "labels.csv").read_text()
    done = toys.cli("judge", "run", "--judge", "lab/lax", "--config", "lab.toml")
    assert done.code == 2 and "no judge reads the answers of Toy" in done.err and done.err.count("\n") == 1
    assert toys.cli("cache", "why", "run", record["id"], "--model", "lab/weak", "--cache", "cache").code == 0


def test_a_changed_score_is_another_figure_without_a_call(toys: Toys) -> None:
    (toys.home / "toy.py").write_text(TOY)
    assert toys.run("toy.py").code == 0
    sent = len(toys.server.asked)
    corrected = TOY.replace('"right": result', '"wrong": not result')
    (toys.home / "toy.py").write_text(corrected)
    done = toys.cli("score", "run", "--task", "toy.py", "--json")
    assert json.loads(done.out)["run"]["Toy"]["models"]["lab/good"]["mean"] == 0.0, done.err
    assert len(toys.server.asked) == sent
    refused = toys.run("toy.py")
    assert refused.code == 2 and "holds another run (score.score.sha256" in refused.err
    assert f"millstream rescore {toys.home / 'run'} --task" in refused.err
    kept = toys.cli("rescore", "run", "--task", "toy.py", "--no-report")
    assert kept.code == 0 and len(toys.server.asked) == sent, kept.err
    assert [line["scores"] for line in toys.lines()] and toys.run("toy.py").code == 0
    assert len(toys.server.asked) == sent and toys.cli("verify", "run").code == 0
    (toys.home / "toy.py").write_text(TOY.replace("Are you sure?", "Sure?"))
    refused = toys.run("toy.py")
    assert refused.code == 2 and "holds another run (prompt.sha256" in refused.err
    # A line of the file that neither asks nor scores changes nothing.
    (toys.home / "toy.py").write_text(corrected + "\nUNUSED = 1\n")
    assert "all there before" in toys.run("toy.py").out


def test_equal_asks_are_samples_of_their_own_and_a_number_shares_them(toys: Toys) -> None:
    run = """
replies = [await ask("What is 1 + 10?") for _ in range(5)]
shared = await ask("What is 2 + 10?", sample=0)
return [each.text for each in replies]
"""
    assert toys.run(written(toys, run), "--trials", "2").code == 0
    asked = toys.server.prompts()
    assert asked["good", "What is 1 + 10?"] == 6 * 2 * 5 and asked["good", "What is 2 + 10?"] == 1
    assert toys.cli("verify", "run").code == 0
    before = len(toys.server.asked)
    assert toys.run("own.py", "--limit", "3", out="fewer").code == 0
    assert toys.run("own.py", "--trials", "3", out="more").code == 0
    assert len(toys.server.asked) == before + 6 * 5


def test_a_changed_transcript_is_found(toys: Toys) -> None:
    (toys.home / "toy.py").write_text(TOY)
    assert toys.run("toy.py").code == 0
    path = toys.home / "run/records.jsonl"
    path.write_text(path.read_text().replace("Are you sure?", "You are sure!", 1))
    done = toys.cli("verify", "run")
    assert done.code != 0 and "records.jsonl line 1" in done.out + done.err


def test_a_plan_has_the_most_calls_and_a_pilot_the_measured_ones(toys: Toys) -> None:
    (toys.home / "toy.py").write_text(TOY)
    words = toys.words("plan", "toy.py", "--json")
    (plan,) = json.loads(toys.cli(*words).out)["runs"]
    calls = {lane["lane"]: lane["calls"] for lane in plan["lanes"]}
    assert calls == {"lab/good": [6, 120], "lab/judge": [0, 120]} and not toys.server.asked
    assert "at most 20 calls (steps_max), of all models together" in plan["remarks"][0]
    pilot = toys.cli(*words, "--pilot", "2")
    assert pilot.code == 0 and len(toys.server.asked) == 2 * 4
    (figures,) = json.loads(pilot.out)["runs"][0]["pilot"]["estimates"]
    assert {lane["lane"]: lane["calls"]["estimate"] for lane in figures["lanes"]} == {"lab/good": 12, "lab/judge": 4}
    assert figures["cost"]["estimate"] == pytest.approx(4 * 4 * COST)
    assert toys.run("toy.py").code == 0 and len(toys.server.asked) == 6 * 4


def test_the_page_cuts_a_long_transcript_and_a_text_in_it_is_inert(toys: Toys) -> None:
    run = """
talk = [ms.user("<script>alert(1)</script> " + "long " * 3000), ms.assistant("No."), ms.user("What is 2 + 10?")]
return (await ask(talk)).text
"""
    toys.server.law = lambda asked: Spent(input=4000)
    done = toys.run(written(toys, run, rows=1))
    assert done.code == 0, done.out
    folder = toys.home / "run"
    kept = read_run(BENCHMARK, folder, read_manifest(folder), {})
    (item,) = kept.items.items
    shown = json.dumps(Matrix([kept.items], {}).details(item, 6_000))
    assert "<script>alert(1)" in shown
    assert "long " * 2000 not in shown and "more characters)" in shown
    (record,) = toys.lines()
    assert "long " * 3000 in {turn["content"].partition("</script> ")[2] for turn in record["transcript"]["messages"]}


TOOLS = """
import millstream as ms

ADD = ms.Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})

class Agent(ms.Benchmark):
    data = [{"id": "a", "text": "Call add."}]

    async def run(self, item, ask):
        talk = [ms.system("Be short."), ms.user(item["text"])]
        first = await ask(talk, tools=[ADD], tool_choice="required")
        results = [ms.ToolResult(call.id, "seven", call.name) for call in first.tool_calls]
        last = await ask([*talk, first, ms.Message("tool", results)], tools=[ADD])
        return [first.tool_calls[0].name, last.text]

    def score(self, item, result):
        return result[0] == "add"
"""


def test_a_reply_among_messages_is_sent_back_with_its_tool_calls(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(TOOLS)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report", "--out", "run")
    done = cli("run", "agent.py", "--model", "sim/tools", "--temperature", "0", "1", *where)
    assert done.code == 0, done.err
    records = lines_of(tmp_path / "run/records.jsonl")
    assert sorted(record["temperature"] for record in records) == [0, 1]
    for record in records:
        assert record["result"] == ["add", "The tools said: seven"]
        first, last = record["transcript"]["calls"]
        assert first["tools"] == ["add"] and first["parameters"] == {"tool_choice": "required"}
        assert last["input"] == 3 and [each["role"] for each in record["transcript"]["messages"]] == [
            *("system", "user", "assistant", "tool", "assistant")
        ]
    assert set(scores_of(tmp_path / "run")["Agent"]["models"]) == {"sim/tools @ 0", "sim/tools @ 1"}


def test_python_goes_on_with_a_run_of_the_command_line_and_a_changed_class_is_another_run(
    cli: CommandLine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts(tmp_path)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    assert cli("run", "doubt.py", "--model", "sim/pupil", *where, "--out", "run").code == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    options: dict[str, Any] = {"base_url": provider.base_url, "cache": str(tmp_path / "cache"), "report": False}
    module = importlib.import_module("doubt")
    monkeypatch.delitem(sys.modules, "doubt")
    sent = provider.calls()
    assert ms.evaluate(module.Doubt(), ["sim/pupil"], tmp_path / "run", **options).is_whole
    assert provider.calls() == sent

    class Louder(module.Doubt):  # type: ignore[name-defined,misc]
        name = "Doubt"

        def score(self, item: dict[str, Any], result: str) -> bool:
            return True

    with pytest.raises(WrongSpecification, match=r"score\.score"):
        ms.evaluate(Louder, ["sim/pupil"], tmp_path / "run", **options)
    (tmp_path / "doubt.py").write_text(DOUBT.replace("Are you sure?", "Sure?"))
    done = cli("run", "doubt.py", "--model", "sim/pupil", *where, "--out", "run")
    assert done.code == 2 and "calls that are the same as before come from the cache" in done.err


def test_a_reply_without_a_word_is_sent_back_as_a_turn_with_one() -> None:
    refused = ms.Reply("", refused=True)
    assert [message.content for message in messages_in([ms.user("?"), refused])] == ["?", "(nothing)"]


def test_a_scorer_reads_a_result_that_is_a_text_and_else_the_last_answer(toys: Toys) -> None:
    (toys.home / "two.py").write_text("""
import millstream as ms

class Words(ms.Benchmark):
    data = [{"n": 1, "right": "11"}]
    score = {"all": ms.match("{right}"), "number": ms.numeric("{right}")}

    async def run(self, item, ask):
        return f"It is {(await ask('What is 1 + 10?')).text}"

class Lists(Words):
    async def run(self, item, ask):
        return [(await ask("What is 1 + 10?")).text]
""")
    for name, scores in (("Words", [0.0, 1.0]), ("Lists", [1.0, 1.0])):
        assert toys.run(f"two.py:{name}", out=name).code == 0
        assert list(toys.lines(out=name)[0]["scores"].values()) == scores
        done = toys.cli("verify", name)
        # These scores need no code of the author's to be computed again.
        assert done.code == 0 and "taken as recorded" not in done.out


def test_runs_of_another_code_on_the_same_rows_are_no_comparison(toys: Toys) -> None:
    (toys.home / "toy.py").write_text(TOY)
    assert toys.run("toy.py", out="first").code == 0
    (toys.home / "toy.py").write_text(TOY.replace("Are you sure?", "Sure?"))
    assert toys.run("toy.py", out="second").code == 0
    first, second = (manner_of(toys.home / name) for name in ("first", "second"))
    assert {name for name in first if first[name] != second[name]} == {"code of run"}
