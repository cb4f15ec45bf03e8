"""One other client, run by the Python of its own environment: `python rival_client.py NAME URL COUNT FOLDER`.

Sends COUNT calls with the floor's prompts, as many in flight, as its own documentation does it. Imports nothing of ours
and nothing but the client; what it prints is discarded.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

IN_FLIGHT = 256
PROMPT_CHARS = 1800
TASK = """
task: speed
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{text}}}}"
doc_to_target: "A"
generation_kwargs: {{until: ["Q:"], do_sample: false, max_gen_toks: 128}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
# A tokenizer that splits at white space: the load generators want one, and there may be no network to get another from.
TOKENIZER = {
    "tokenizer.json": {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"},
    },
    "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"},
}


def prompts(count: int) -> Iterator[str]:
    filler = "arguments for and against " * 80
    return (f"{number} {filler}"[:PROMPT_CHARS] for number in range(count))


def send_all(ask: Callable[[list[dict[str, str]]], Awaitable[Any]], count: int) -> None:
    """Sends the prompts by a function that asks one."""

    async def main() -> None:
        waiting = prompts(count)

        async def work() -> None:
            for prompt in waiting:
                answer = await ask([{"role": "user", "content": prompt}])
                if not answer.choices[0].message.content:
                    raise SystemExit("an empty answer")

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))

    asyncio.run(main())


def openai_sdk(url: str, count: int, folder: Path) -> None:
    openai = import_module("openai")
    client = openai.AsyncOpenAI(base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient())
    send_all(lambda messages: client.chat.completions.create(model="fixed", messages=messages), count)


def openai_sdk_httpx(url: str, count: int, folder: Path) -> None:
    client = import_module("openai").AsyncOpenAI(base_url=url, api_key="none")
    send_all(lambda messages: client.chat.completions.create(model="fixed", messages=messages), count)


def litellm(url: str, count: int, folder: Path) -> None:
    ask = import_module("litellm").acompletion
    send_all(lambda messages: ask(model="openai/fixed", api_base=url, api_key="none", messages=messages), count)


def inspect(url: str, count: int, folder: Path) -> None:
    harness, dataset = import_module("inspect_ai"), import_module("inspect_ai.dataset")
    os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    samples = [dataset.Sample(text, id=number, target="A") for number, text in enumerate(prompts(count), 1)]
    task = harness.Task(
        dataset=dataset.MemoryDataset(samples),
        solver=import_module("inspect_ai.solver").generate(),
        scorer=import_module("inspect_ai.scorer").match(location="any"),
    )
    arguments = {"log_dir": str(folder / "logs"), "display": "none", "max_connections": IN_FLIGHT}
    [log] = harness.eval(task, model="openai/fixed", model_args={"responses_api": False}, **arguments)
    if log.status != "success" or len(log.samples or ()) != count:
        raise SystemExit(f"{log.status}: {log.error and log.error.message}")


def lm_eval(url: str, count: int, folder: Path) -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hub")}
    os.environ["OPENAI_API_KEY"] = "none"
    harness = import_module("lm_eval")
    (folder / "speed.yaml").write_text(TASK.format(path=prompts_in(folder, count)))
    tasks = import_module("lm_eval.tasks").TaskManager(include_path=str(folder), include_defaults=False)
    model = {"model": "fixed", "base_url": f"{url}/chat/completions", "num_concurrent": IN_FLIGHT}
    arguments = {"task_manager": tasks, "apply_chat_template": True, "bootstrap_iters": 0}
    result = harness.simple_evaluate("local-chat-completions", model, ["speed"], **arguments)
    if len(result["samples"]["speed"]) != count:
        raise SystemExit(f"{len(result['samples']['speed'])} of {count} samples")


def aiperf(url: str, count: int, folder: Path) -> None:
    subprocess.run(
        [
            *(beside_python("aiperf"), "profile", "--model", "fixed", "--url", url.removesuffix("/v1")),
            *("--endpoint-type", "chat", "--concurrency", str(IN_FLIGHT), "--request-count", str(count)),
            *("--tokenizer", str(tokenizer_in(folder)), "--use-server-token-count", "--ui", "none"),
            *("--input-file", str(prompts_in(folder, count)), "--custom-dataset-type", "single_turn"),
            *("--output-artifact-dir", str(folder / "out")),
        ],
        check=True,
    )


def guidellm(url: str, count: int, folder: Path) -> None:
    subprocess.run(
        [
            *(beside_python("guidellm"), "run", "--disable-console"),
            *("--backend", f"kind=openai_http,target={url.removesuffix('/v1')},model=fixed,stream=false"),
            *("--profile", f"kind=concurrent,streams={IN_FLIGHT}"),
            *("--constraint", f"kind=max_requests,count={count}"),
            *("--data", f"kind=json_file,path={prompts_in(folder, count)}"),
            *("--tokenizer", f"kind=hf_auto,model={tokenizer_in(folder)}"),
        ],
        check=True,
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hub")},
    )


def beside_python(program: str) -> str:
    return str(Path(sys.executable).with_name(program))


def prompts_in(folder: Path, count: int) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps({"text": prompt}) + "\n" for prompt in prompts(count)))
    return path


def tokenizer_in(folder: Path) -> Path:
    path = folder / "tokenizer"
    path.mkdir()
    for name, content in TOKENIZER.items():
        (path / name).write_text(json.dumps(content))
    return path


CLIENTS = {
    "openai": openai_sdk,
    "openai-httpx": openai_sdk_httpx,
    "litellm": litellm,
    "inspect-ai": inspect,
    "lm-eval": lm_eval,
    "aiperf": aiperf,
    "guidellm": guidellm,
}


if __name__ == "__main__":
    CLIENTS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
