"""Tasks of lm-eval's in a process of its own, since importing it takes seconds: `python lm_eval_runs.py FOLDER ADDRESS
RUN…` runs them one after the other and prints what came of each as JSON."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

X = "'position <<A>>' or 'position <<B>>'"
DOCS = 6
TASKS = {
    "letters": """
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{letter}}"
generation_kwargs: {until: ["\\n\\n", "Q:"], do_sample: false, max_gen_toks: 32}
metric_list: [{metric: exact_match}]
filter_list:
  - name: letter
    filter: [{function: regex, regex_pattern: "([AB])"}, {function: take_first}]
""",
    "repeated": """
output_type: generate_until
repeats: 5
doc_to_text: "{{question}}"
doc_to_target: "{{letter}}"
generation_kwargs: {until: ["\\n\\n"], do_sample: true, temperature: 0.7, max_gen_toks: 32}
metric_list: [{metric: exact_match}]
filter_list:
  - name: all
    filter: [{function: regex, regex_pattern: "([AB])"}, {function: majority_vote}, {function: take_first}]
""",
    "choices": """
output_type: multiple_choice
doc_to_text: "{{question}}\\nAnswer:"
doc_to_choice: ["A", "B", "neither of them"]
doc_to_target: "{{['A', 'B'].index(letter)}}"
metric_list: [{metric: acc}, {metric: acc_norm}]
""",
    "perplexity": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}}"
metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}]
""",
}
HEAD = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
"""


def write_tasks(folder: Path) -> None:
    """The tasks and their documents, on disk alone. Two of the documents ask the same."""
    rows = []
    for number in (*range(DOCS - 1), 0):
        asked = f"Should number {number} be even ✓?\n\nAnswer either {X}. Only answer with {X}."
        rows.append(json.dumps({"question": asked, "letter": "AB"[number % 2]}))
    path = folder / "letters.jsonl"
    path.write_text("\n".join(rows))
    for name, told in TASKS.items():
        (folder / f"{name}.yaml").write_text(HEAD.format(name=name, path=path) + told)


def offline(folder: Path) -> dict[str, str]:
    return {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(folder / "hub"),
        "OPENAI_API_KEY": "sk-sim",
    }


class Tokenizer(BaseHTTPRequestHandler):
    """The provider's completions beside vLLM's addresses for its tokens, which lm-eval's own model wants: it tells
    context and continuation apart by their numbers."""

    provider = ""
    known: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._answer({"bos_token": "<s>", "eos_token": "</s>"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body)
        if self.path == "/tokenize":
            self._answer({"tokens": [self._number(token) for token in re.findall(r" ?[^\s]+|\s", asked["prompt"])]})
        elif self.path == "/detokenize":
            self._answer({"prompt": "".join(self.known[number] for number in asked["tokens"])})
        else:
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{self.provider}{self.path}", body, headers, method="POST")
            with urllib.request.urlopen(request, timeout=10) as answer:
                self._answer(json.load(answer))

    def _number(self, token: str) -> int:
        if token not in self.known:
            self.known.append(token)
        return self.known.index(token)

    def _answer(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Runs:
    def __init__(self, folder: Path, address: str) -> None:
        from lm_eval.tasks import TaskManager  # type: ignore[import-untyped]

        import millstream.interfaces.plugins.lm_eval_model  # noqa: F401 - which registers itself

        self.folder, self.address = folder, address
        self.tasks = TaskManager(include_path=str(folder), include_defaults=False)

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.address}/sim/{path}", data, timeout=10) as answer:
            return json.load(answer) if body is None else None

    def run(self, task: str, model: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        from lm_eval import simple_evaluate  # type: ignore[import-untyped]

        self.ask("reset", {})
        found = simple_evaluate(
            model, model_args=arguments, tasks=[task], task_manager=self.tasks, bootstrap_iters=0, **options
        )
        assert found is not None
        return {
            "scores": {name: value for name, value in found["results"][task].items() if isinstance(value, float)},
            "samples": [
                [sample["doc_id"], sample["resps"], sample["filtered_resps"]] for sample in found["samples"][task]
            ],
            "sent": sorted(self.ask("counts").values()),
        }

    def ours(self, model: str, **more: Any) -> dict[str, Any]:
        return {"model": model, "base_url": f"{self.address}/v1", "cache": str(self.folder / "cache"), **more}

    # --- what is run ---

    def chat(self, task: str) -> dict[str, Any]:
        own = {"model": "open", "base_url": f"{self.address}/v1/chat/completions", "num_concurrent": 8}
        how = {"apply_chat_template": True}
        return {
            "own": self.run(task, "local-chat-completions", own, **how),
            "ours": self.run(task, "millstream", self.ours("openai/open"), **how),
            "again": self.run(task, "millstream", self.ours("openai/open"), **how),
            "bare": self.run(task, "millstream", self.ours("openai/open")),
        }

    def over_gateway(self) -> dict[str, Any]:
        """lm-eval's own model, which knows of a gateway only the address."""
        found = {}
        for name in ("monday", "tuesday"):
            address = f"{os.environ['GATEWAY']}/run/lm-eval-{name}/v1/chat/completions"
            own = {"model": "openai/open", "base_url": address, "num_concurrent": 8}
            found[name] = self.run("repeated", "local-chat-completions", own, apply_chat_template=True)
        return found

    def letters(self) -> dict[str, Any]:
        return self.chat("letters")

    def repeated(self) -> dict[str, Any]:
        return self.chat("repeated")

    def weighed(self, task: str) -> dict[str, Any]:
        Tokenizer.provider = self.address
        with ThreadingHTTPServer(("127.0.0.1", 0), Tokenizer) as server:
            threading.Thread(target=server.serve_forever).start()
            own = {
                "model": "open",
                "base_url": f"http://127.0.0.1:{server.server_port}/v1/completions",
                "tokenizer_backend": "remote",
                "tokenized_requests": False,
                "num_concurrent": 4,
            }
            found = {"own": self.run(task, "local-completions", own)}
            server.shutdown()
        ours = self.ours("openai-completions/open", prefix="<s>")
        return found | {name: self.run(task, "millstream", ours) for name in ("ours", "again")}

    def choices(self) -> dict[str, Any]:
        return self.weighed("choices")

    def perplexity(self) -> dict[str, Any]:
        return self.weighed("perplexity")

    def conversation_for_completions(self) -> str:
        from millstream.configuration.errors import UsageError

        try:
            self.run("letters", "millstream", self.ours("openai-completions/open"), apply_chat_template=True)
        except UsageError as error:
            return str(error)
        return ""

    def failing(self) -> dict[str, Any]:
        """Half of the requests are refused; the same again sends these alone."""
        from lm_eval import simple_evaluate

        from millstream.interfaces.plugins.lm_eval_model import CallsFailed

        self.ask("reset", {})
        self.ask("faults", {"faults": ["rejected,at=1-3"]})
        arguments = self.ours("openai/steady")
        line = ""
        try:
            simple_evaluate("millstream", model_args=arguments, tasks=["letters"], task_manager=self.tasks)
        except CallsFailed as error:
            line = str(error)
        self.ask("faults", {"faults": []})
        return {"line": line, **self.run("letters", "millstream", arguments)}

    def spending(self) -> list[str]:
        """Two lists of six requests at 7 cents each, under one budget of 60."""
        from lm_eval.api.instance import Instance  # type: ignore[import-untyped]

        from millstream.engine.fault import Stopped
        from millstream.interfaces.plugins.lm_eval_model import MillstreamLM

        prices = self.folder / "prices.toml"
        prices.write_text('[prices."openai/steady"]\ninput = 1000\noutput = 2000\n')
        arguments = self.ours("openai/steady", config_file=str(prices), max_cost=0.6, concurrency=1, max_gen_toks=32)
        model, said = MillstreamLM(**arguments), []
        for number in range(2):
            asked = [f"Say something short, {number} {each}." for each in range(6)]
            requests = [Instance("generate_until", {}, (text, {}), at) for at, text in enumerate(asked)]
            try:
                said.append(f"{len(model.generate_until(requests, disable_tqdm=True))} answers")
            except Stopped as stopped:
                said.append(str(stopped))
        return said

    def weighed_by_chat(self) -> str:
        try:
            self.run("choices", "millstream", self.ours("openai/open"))
        except NotImplementedError as error:
            return str(error)
        return ""


def main() -> None:
    folder, address = Path(sys.argv[1]), sys.argv[2]
    os.environ.update(offline(folder))
    write_tasks(folder)
    runs = Runs(folder, address)
    print(json.dumps({name: getattr(runs, name)() for name in sys.argv[3:]}))


if __name__ == "__main__":
    main()
