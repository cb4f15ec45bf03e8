"""Evaluations of Inspect's in a process of its own, since Inspect keeps much for a whole process and warns of itself:
`python inspect_runs.py FOLDER ADDRESS` runs them one after the other and prints what came of each as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import CachePolicy, GenerateConfig, get_model
from inspect_ai.scorer import Score, Target, accuracy, match, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver, use_tools
from inspect_ai.tool import Tool, tool

import millstream.interfaces.plugins.inspect_provider  # noqa: F401 - what the entry point loads

SAMPLES = 6
EPOCHS = 5
X = "'position <<A>>' or 'position <<B>>'"


def question(number: int) -> str:
    return f"Should number {number} be even?\n\nAnswer either {X}. Only answer with {X}."


class Runs:
    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.arguments = {"cache": str(folder / "cache")}

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.address}/sim/{path}", data, timeout=10) as answer:
            return json.load(answer) if body is None else None

    def run(self, task: Task, model: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        self.ask("reset", {})
        [log] = eval(
            task, model=model, model_args=arguments, log_dir=str(self.folder / "logs"), display="none", **options
        )
        return {**self.told(log), "sent": sorted(self.ask("counts").values())}

    def told(self, log: EvalLog) -> dict[str, Any]:
        samples = sorted(log.samples or [], key=lambda sample: (sample.epoch, str(sample.id)))
        return {
            "status": log.status,
            "error": None if log.error is None else log.error.message,
            "results": None if log.results is None else log.results.model_dump(mode="json")["scores"],
            "samples": [
                {
                    "at": [sample.id, sample.epoch],
                    "error": None if sample.error is None else sample.error.message,
                    "said": [choice.message.text for choice in sample.output.choices],
                    "scores": {name: score.value for name, score in (sample.scores or {}).items()},
                    "stop": None if sample.output.empty else sample.output.stop_reason,
                    "tokens": [usage.total_tokens for usage in sample.model_usage.values()],
                    "made": (sample.output.metadata or {}).get("millstream"),
                    "turns": [message.role for message in sample.messages],
                    "tools": [message.text for message in sample.messages if message.role == "tool"],
                }
                for sample in samples
            ],
        }

    # --- what is run ---

    def letters(self) -> Task:
        """Two of the samples ask the same."""
        asked = [*range(SAMPLES - 1), 0]
        dataset = MemoryDataset([Sample(question(of), id=at, target="A") for at, of in enumerate(asked, 1)])
        return Task(dataset=dataset, solver=generate(), scorer=match(location="any"), epochs=EPOCHS)

    def plain(self) -> dict[str, Any]:
        """Without us, with us, and with us again."""
        task = self.letters()
        own = self.run(task, "openai/open", {"responses_api": False}, temperature=0.5)
        ours, again = (self.run(task, "millstream/openai/open", self.arguments, temperature=0.5) for _ in range(2))
        return {"own": own, "ours": ours, "again": again}

    def over_gateway(self) -> dict[str, Any]:
        """Inspect's own provider, which knows of a gateway only the address."""
        found = {}
        for name in ("monday", "tuesday"):
            address = f"{os.environ['GATEWAY']}/run/inspect-{name}/v1"
            arguments = {"responses_api": False}
            found[name] = self.run(
                self.letters(), "openai/openai/open", arguments, model_base_url=address, temperature=0.5
            )
        return found

    def choices(self) -> dict[str, Any]:
        task = Task(dataset=[Sample("three of one", id=1)], solver=generate(), config=GenerateConfig(num_choices=3))
        return {name: self.run(task, "millstream/openai/steady", self.arguments) for name in ("first", "again")}

    def retried(self) -> dict[str, Any]:
        """A sample that fails after its first call is begun anew."""
        begun: list[int] = []

        @solver
        def stumbling() -> Solver:
            async def solve(state: TaskState, go_on: Generate) -> TaskState:
                state = await go_on(state)
                begun.append(1)
                if len(begun) == 1:
                    raise RuntimeError("stumbled")
                return await go_on(state)

            return solve

        task = Task(dataset=[Sample("once more", id=1)], solver=stumbling())
        return self.run(task, "millstream/openai/steady", self.arguments, retry_on_error=1)

    def graded(self) -> dict[str, Any]:
        """A second model grades, and asks the same of every sample."""

        @scorer(metrics=[accuracy()])
        def grader() -> Callable[[TaskState, Target], Any]:
            async def grade(state: TaskState, target: Target) -> Score:
                said = await get_model("millstream/openai/steady", **self.arguments).generate("Is this sound?")
                return Score(value=1, explanation=said.completion)

            return grade

        dataset = MemoryDataset([Sample(f"graded {number}", id=number) for number in range(3)])
        task = Task(dataset=dataset, solver=generate(), scorer=grader(), epochs=2)
        return {name: self.run(task, "millstream/openai/open", self.arguments) for name in ("first", "again")}

    def cached_by_inspect(self) -> dict[str, Any]:
        task = Task(dataset=[Sample("kept by Inspect", id=1)], solver=generate(cache=CachePolicy()))
        live = {**self.arguments, "mode": "live"}
        return {name: self.run(task, "millstream/openai/steady", live) for name in ("first", "again")}

    def tools(self) -> dict[str, Any]:
        @tool
        def add() -> Tool:
            async def execute(x: int, y: int) -> str:
                """Add two numbers.

                Args:
                    x: One number.
                    y: Another.
                """
                return str(x + y)

            return execute

        task = Task(dataset=[Sample("What is 1 + 2?", id=1)], solver=[use_tools(add()), generate()], epochs=2)
        own = self.run(task, "openai/tools", {"responses_api": False})
        ours, again = (self.run(task, "millstream/openai/tools", self.arguments) for _ in range(2))
        return {"own": own, "ours": ours, "again": again}

    def unknown_model(self) -> dict[str, Any]:
        task = Task(dataset=[Sample("hello", id=1)], solver=generate())
        return self.run(task, "millstream/openai/nobody", self.arguments)

    def stopped(self) -> dict[str, Any]:
        """A dead key: the other samples are not tried."""
        dataset = MemoryDataset([Sample(f"no way in {number}", id=number) for number in range(50)])
        task = Task(dataset=dataset, solver=generate(), fail_on_error=False)
        self.ask("faults", {"faults": ["unauthorized"]})
        try:
            found = self.run(task, "millstream/openai/steady", self.arguments | {"concurrency": 2})
        finally:
            self.ask("faults", {"faults": []})
        return found | {"errors": sorted({sample["error"] for sample in found["samples"]})}

    def unopened(self) -> dict[str, Any]:
        """A cache that is no folder."""
        path = self.folder / "no-folder"
        path.write_text("")
        task = Task(dataset=[Sample("hello", id=1)], solver=generate())
        return self.run(task, "millstream/openai/steady", {"cache": str(path)})

    def filtered(self) -> dict[str, Any]:
        self.ask("faults", {"faults": ["content_filter"]})
        task = Task(dataset=[Sample("held back", id=1)], solver=generate())
        try:
            return self.run(task, "millstream/openai/steady", self.arguments)
        finally:
            self.ask("faults", {"faults": []})

    def cancelled(self) -> dict[str, Any]:
        """A hundred calls to a provider that says nothing, of which none is waited for."""
        self.ask("faults", {"faults": ["silence=30"]})
        self.ask("reset", {})

        async def ask() -> dict[str, Any]:
            async with get_model("millstream/openai/steady", **self.arguments, memoize=False) as model:
                async with anyio.create_task_group() as group:
                    for number in range(100):
                        group.start_soon(model.generate, f"never answered {number}")
                    for _ in range(1_000):
                        if self.ask("summary?window_s=0")["in_flight"]:
                            break
                        await asyncio.sleep(0.02)
                    group.cancel_scope.cancel()
                for _ in range(100):
                    summary = self.ask("summary?window_s=0")
                    if not summary["in_flight"]:
                        break
                    await asyncio.sleep(0.02)
                self.ask("faults", {"faults": []})
                after = await model.generate("never answered 0")
                return {"outcomes": summary["outcomes"], "after": after.completion, "made": after.metadata}

        return asyncio.run(ask())

    def connections(self) -> int:
        return get_model("millstream/openai/steady", **self.arguments, concurrency=77).api.max_connections()

    def refused(self) -> dict[str, str]:
        said = {}
        wrong: dict[str, dict[str, Any]] = {
            "argument": {"rpn": 5},
            "key": {"api_key": "sk-canary"},
            "file": {"config_file": str(self.folder / "nowhere.toml")},
        }
        for name, arguments in wrong.items():
            try:
                get_model("millstream/openai/steady", **arguments)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                said[name] = f"{type(error).__name__}: {getattr(error, 'message', error)}"
        return said


def main() -> None:
    folder, address = Path(sys.argv[1]), sys.argv[2]
    os.environ.update(
        OPENAI_API_KEY="sk-sim", OPENAI_BASE_URL=f"{address}/v1", INSPECT_CACHE_DIR=str(folder / "inspect")
    )
    runs = Runs(folder, address)
    wanted = sys.argv[3:]
    print(json.dumps({name: getattr(runs, name)() for name in wanted}))


if __name__ == "__main__":
    main()
