"""One harness with its own provider and with ours, in one process: `python -m … NAME URL COUNT ROUNDS`.

Prints one line of JSON: the harness's version, and for each round the seconds for COUNT samples without us, with us,
and with us again from the cache. Prompts differ in every round. Our plug-ins are loaded by name, as by harnesses.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

IN_FLIGHT = 100
PLUGINS = "millstream.interfaces.plugins"
TASK = """
task: speed
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "A"
generation_kwargs: {{until: ["Q:"], do_sample: false, max_gen_toks: 128}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""

Ways = dict[str, Callable[[], None]]


def _questions(count: int, number: int) -> list[str]:
    return [f"In round {number}, is {each} even? {'Think of it. ' * 20}" for each in range(count)]


def inspect(folder: Path, url: str, count: int, number: int) -> Ways:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    os.environ["OPENAI_BASE_URL"] = url
    import_module(f"{PLUGINS}.inspect_provider")
    dataset = MemoryDataset([Sample(text, id=at, target="A") for at, text in enumerate(_questions(count, number), 1)])

    def run(model: str, **arguments: Any) -> None:
        task = Task(dataset=dataset, solver=generate(), scorer=match(location="any"))
        logs = str(folder / "logs")
        [log] = eval(task, model=model, model_args=arguments, log_dir=logs, display="none", max_connections=IN_FLIGHT)
        if log.status != "success" or len(log.samples or ()) != count:
            raise SystemExit(f"{model}: {log.status}: {log.error and log.error.message}")

    ours = {"cache": str(folder / "cache"), "concurrency": IN_FLIGHT}
    return {
        "own": lambda: run("openai/fixed", responses_api=False),
        "cold": lambda: run("millstream/openai/fixed", **ours),
        "cached": lambda: run("millstream/openai/fixed", **ours),
    }


def lm_eval(folder: Path, url: str, count: int, number: int) -> Ways:
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(folder / "hub"))
    harness = import_module("lm_eval")
    import_module(f"{PLUGINS}.lm_eval_model")
    tasks = import_module("lm_eval.tasks")
    home = folder / f"round-{number}"
    home.mkdir()
    path = home / "questions.jsonl"
    path.write_text("\n".join(json.dumps({"question": text}) for text in _questions(count, number)))
    (home / "speed.yaml").write_text(TASK.format(path=path))
    tasks_here = tasks.TaskManager(include_path=str(home), include_defaults=False)

    def run(name: str, **arguments: Any) -> None:
        found = harness.simple_evaluate(
            name, arguments, ["speed"], task_manager=tasks_here, apply_chat_template=True, bootstrap_iters=0
        )
        if len(found["samples"]["speed"]) != count:
            raise SystemExit(f"{name}: {len(found['samples']['speed'])} of {count} samples")

    theirs = {"model": "fixed", "base_url": f"{url}/chat/completions", "num_concurrent": IN_FLIGHT}
    ours = {"model": "openai/fixed", "base_url": url, "cache": str(folder / "cache"), "concurrency": IN_FLIGHT}
    return {
        "own": lambda: run("local-chat-completions", **theirs),
        "cold": lambda: run("millstream", **ours),
        "cached": lambda: run("millstream", **ours),
    }


HARNESSES = {"inspect-ai": inspect, "lm-eval": lm_eval}


def main() -> None:
    name, url, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.environ["OPENAI_API_KEY"] = "none"
    taken: list[dict[str, float]] = []
    # The harnesses' own output is discarded.
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder, contextlib.redirect_stdout(io.StringIO()):
        for number in range(rounds + 1):
            ways = HARNESSES[name](Path(folder), url, count, number)
            seconds = {}
            for way, run in ways.items():
                began = time.perf_counter()
                run()
                seconds[way] = time.perf_counter() - began
            taken.append(seconds)
    # The first round loads what each of them needs.
    print(json.dumps({"version": version(name), "rounds": taken[1:]}))


if __name__ == "__main__":
    main()
