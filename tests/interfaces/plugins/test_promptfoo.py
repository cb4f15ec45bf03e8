"""promptfoo through the gateway, as docs/embedding.md has it: what its configuration says, as requests."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Provider, simulated_provider
from served_gateway import served_gateway

PAGE = Path(__file__).parents[3] / "docs" / "embedding.md"
REPEATS = 5


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[Provider]:
    with simulated_provider(tmp_path) as running:
        yield running


@pytest.fixture
def gateway(tmp_path: Path, sim: Provider) -> Iterator[str]:
    with served_gateway(tmp_path, sim) as address:
        yield address


def configured() -> Any:
    """The file on the page."""
    section = PAGE.read_text("utf-8").partition("\n## promptfoo\n")[2].partition("\n## ")[0]
    return yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])


def evaluate(configuration: Any, gateway: str, run: str) -> list[tuple[str, bool]]:
    """What promptfoo 0.121 sends for `RUN=… promptfoo eval --repeat 5`, header for header."""
    [provider] = configuration["providers"]
    how = provider["config"]
    address = how["apiBaseUrl"].replace("{{env.RUN}}", run).replace("http://127.0.0.1:8400", gateway)
    answers = []
    for test in [test for test in configuration["tests"] for _ in range(REPEATS)]:
        text = configuration["prompts"][0].replace("{{number}}", str(test["vars"]["number"]))
        body = {
            "model": provider["id"].removeprefix("openai:chat:").replace("gpt-6-luna", "open"),
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 1024,
            "temperature": how["temperature"],
        }
        headers = {
            "Content-Type": "application/json",
            "Authorization": "Bearer anything",
            "x-promptfoo-version": "0.121.20",
            "accept": "*/*",
            "accept-language": "*",
            "sec-fetch-mode": "cors",
            "user-agent": "node",
        }
        request = urllib.request.Request(f"{address}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
            answers.append((said, answer.headers["X-Millstream-Cached"] == "true"))
    return answers


def test_repeats_are_samples_of_their_own_and_a_new_run_sends_nothing(gateway: str, sim: Provider) -> None:
    configuration = configured()
    asked = len(configuration["tests"])
    first = evaluate(configuration, gateway, "monday")
    assert sorted(sim.received().values()) == [REPEATS] * asked
    again = evaluate(configuration, gateway, "tuesday")
    assert sorted(sim.received().values()) == [REPEATS] * asked
    assert [said for said, _ in first] == [said for said, _ in again]
    assert ([cached for _, cached in first], [cached for _, cached in again]) == (
        [False] * REPEATS * asked,
        [True] * REPEATS * asked,
    )
