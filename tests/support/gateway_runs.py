"""Inspect's and lm-eval's own clients of OpenAI, at a provider and through the gateway before it, in a process of their
own, since importing them takes seconds: `python gateway_runs.py FOLDER PROVIDER GATEWAY` prints what came as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import inspect_runs
import lm_eval_runs
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate


class Evaluations(inspect_runs.Runs):
    def at(self, name: str, base_url: str, *, responses: bool = False) -> dict[str, Any]:
        """Two of the samples ask the same."""
        os.environ["OPENAI_BASE_URL"] = base_url
        asked = [*range(inspect_runs.SAMPLES - 1), 0]
        dataset = MemoryDataset([Sample(inspect_runs.question(of), id=at, target="A") for at, of in enumerate(asked)])
        task = Task(dataset=dataset, solver=generate(), scorer=match(location="any"), epochs=inspect_runs.EPOCHS)
        # Memoized, it would keep the address that it was made with.
        return self.run(task, get_model(name, memoize=False, responses_api=responses), {}, temperature=0.5)

    def all(self, provider: str, gateway: str) -> dict[str, Any]:
        return {
            "own": self.at("openai/open", f"{provider}/v1"),
            "first": self.at("openai/lab/open", f"{gateway}/run/monday/v1"),
            "again": self.at("openai/lab/open", f"{gateway}/run/tuesday/v1"),
            "same run": self.at("openai/lab/open", f"{gateway}/run/tuesday/v1"),
            "responses": self.at("openai/lab/open", f"{gateway}/run/wednesday/v1", responses=True),
        }


class Tasks(lm_eval_runs.Runs):
    def at(self, task: str, name: str, base_url: str) -> dict[str, Any]:
        arguments = {"model": name, "base_url": f"{base_url}/chat/completions", "num_concurrent": 8}
        return self.run(task, "local-chat-completions", arguments, apply_chat_template=True)

    def all(self, task: str, provider: str, gateway: str) -> dict[str, Any]:
        return {
            "own": self.at(task, "open", f"{provider}/v1"),
            "first": self.at(task, "lab/open", f"{gateway}/run/thursday-{task}/v1"),
            "again": self.at(task, "lab/open", f"{gateway}/run/friday-{task}/v1"),
        }


def main() -> None:
    folder, provider, gateway = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    key = os.environ["OPENAI_API_KEY"]
    os.environ.update(lm_eval_runs.offline(folder), INSPECT_CACHE_DIR=str(folder / "inspect"))
    os.environ["OPENAI_API_KEY"] = key
    lm_eval_runs.write_tasks(folder)
    tasks = Tasks(folder, provider)
    found: dict[str, Any] = {task: tasks.all(task, provider, gateway) for task in ("letters", "repeated")}
    found["inspect"] = Evaluations(folder, provider).all(provider, gateway)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
