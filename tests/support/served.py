"""`millstream serve` as a process, for official clients that are told its address and nothing else.

Behind it: the simulated provider, which speaks OpenAI's protocol; a mock that nobody here wrote, which speaks
Anthropic's and Gemini's; and a server in this process that writes down what it is sent.
"""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import anthropic_shapes
import chat_shapes
import gemini_shapes
import pytest
from command_line import COMMAND, Provider, environment, simulated_provider
from mocks import aimock, free_port, why_no_aimock
from prepared import kind_for
from pydantic import BaseModel
from recorder import Recorder, Sent, recording

# Callers by what bounds them, and what each sends as its key.
TOKEN = "token-of-a-tester"
PROVIDERS_KEY = "sk-lab-0123456789"
CALLERS = {"tester": "", "poor": "max_cost = 0.000001", "narrow": 'models = ["lab/open"]', "slim": "concurrency = 1"}
# Clients retry twice by themselves: each of these would be three requests.
REQUESTS = re.compile(r"^millstream_(?:requests|refused)_total\S* (\S+)$", re.MULTILINE)

HELLO, SAID = "Say hello to Köln ✓ 😀.", "Hello Köln – ✓ 😀, from the mock."
SYSTEM, AGAIN, SAID_AGAIN = "Be brief.", "And to Bonn?", "Hello Bonn, in brief."
SKY, RAIN, WEATHER = "get_weather at “Köln” for 2 days", "rain ☂ at Köln", "Take an umbrella."
TOWN = "A town “Köln” of 1100000"
WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["place", "days"],
    "additionalProperties": False,
}
ASKED = {"place": "Köln", "days": 2}
# Every protocol's names of the same counts.
USAGE = {
    "input_tokens": 11, "output_tokens": 5, "promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16,
}  # fmt: skip
FIXTURES: list[dict[str, Any]] = [
    {"match": {"toolCallId": "toolu_1", "toolResultContains": RAIN}, "response": {"content": WEATHER}},
    {
        "match": {"userMessage": SKY, "toolName": "get_weather"},
        "response": {
            "toolCalls": [
                {"id": "toolu_1", "name": "get_weather", "arguments": '{"place": "Köln", "days": 2}'},
            ]
        },
    },
    {"match": {"userMessage": TOWN}, "response": {"content": '{"name": "Köln", "people": 1100000}'}},
    # Only where the system's words and the turns before have come too.
    {
        "match": {"userMessage": AGAIN, "systemMessage": SYSTEM, "turnIndex": 1},
        "response": {"content": SAID_AGAIN, "usage": USAGE},
    },
    {"match": {"userMessage": HELLO}, "response": {"content": SAID}},
]


class Place(BaseModel):
    """What is asked for as JSON."""

    name: str
    people: int


KOELN = Place(name="Köln", people=1_100_000)


class Behind(NamedTuple):
    """One family of provider, by the models to ask there. `is_mock`: it answers as FIXTURES say."""

    chat: str
    tools: str
    json: str
    is_mock: bool

    def says(self, *texts: str) -> str:
        """What it answers to a conversation of these texts, the system's first."""
        if self.is_mock:
            return SAID_AGAIN if texts[-1] == AGAIN else SAID
        prompt = sha256("\n".join(texts).encode()).hexdigest()
        return f"This is a simulated answer to the prompt {prompt}."

    def counts(self, *texts: str) -> tuple[int, int]:
        """The tokens that it says it read and wrote in that."""
        if self.is_mock:
            return 11, 5
        return -(-len("\n".join(texts)) // 4), -(-len(self.says(*texts)) // 4)

    @property
    def tells_weather(self) -> str:
        return WEATHER if self.is_mock else f"The tools said: {RAIN}"


BEHIND = {
    "openai": Behind("lab/steady", "lab/tools", "lab/json", is_mock=False),
    "anthropic": Behind(*3 * ("claude/claude-sonnet-5-5",), is_mock=True),
    "gemini": Behind(*3 * ("mountain/gemini-3-flash",), is_mock=True),
}


in_each = pytest.mark.parametrize(
    "behind",
    [
        pytest.param(
            one,
            id=name,
            marks=pytest.mark.skipif(
                one.is_mock and bool(why_no_aimock()), reason=why_no_aimock() or "the mock can be used"
            ),
        )
        for name, one in BEHIND.items()
    ],
)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


class Served:
    """The running gateway. `recorder` stands behind the providers `recorded`, `recorded-claude`, `recorded-gemini`."""

    def __init__(self, port: int, provider: Provider, recorder: Recorder) -> None:
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.origin}/v1"
        self.provider = provider
        self.recorder = recorder

    def requests(self) -> int:
        """How many came so far, those at the door included."""
        return int(sum(float(count) for count in REQUESTS.findall(self.metrics())))

    def metrics(self) -> str:
        asked = urllib.request.Request(f"{self.origin}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return str(answer.read().decode())

    def await_in_flight(self, count: int, within_s: float = 10.0) -> float:
        """Seconds until the provider has so many calls in flight."""
        began = time.monotonic()
        while self.provider.summary()["in_flight"] != count:
            assert time.monotonic() - began < within_s, f"not {count} in flight: {self.provider.summary()}"
            time.sleep(0.01)
        return time.monotonic() - began


def configuration(provider: Provider, mock: str, recorder: Recorder) -> str:
    rows = {
        "lab": ("openai", provider.base_url),
        "claude": ("anthropic", mock),
        "mountain": ("gemini", f"{mock}/v1beta"),
        "recorded": ("openai", recorder.base_url),
        "recorded-claude": ("anthropic", recorder.origin),
        "recorded-gemini": ("gemini", f"{recorder.origin}/v1beta"),
    }
    lines = ["[gateway.models]", '"claude-word" = "lab/steady"', '"azure-word" = "recorded/model"']
    lines += ['[prices."lab/steady"]', "input = 1.0", "output = 1.0", '[models."lab/steady"]', "max_output = 4096"]
    for name, bound in CALLERS.items():
        lines += [f"[gateway.callers.{name}]", f'token = "env:{name.upper()}_TOKEN"', bound]
    for name, (kind, base_url) in rows.items():
        lines += [f"[providers.{name}]", f'kind = "{kind}"', f'base_url = "{base_url}"', 'key = "env:LAB_KEY"']
    return "\n".join(lines) + "\n"


@contextmanager
def serving(home: Path) -> Iterator[Served]:
    """Without node nobody listens where the mock would."""
    with ExitStack() as open_until_the_end:
        enter = open_until_the_end.enter_context
        provider, recorder = enter(simulated_provider(home)), enter(recording())
        recorder.react = react
        mock = f"http://127.0.0.1:{free_port()}" if why_no_aimock() else enter(aimock(home, FIXTURES))
        (home / "gateway.toml").write_text(configuration(provider, mock.removesuffix("/v1"), recorder))
        port = home / "gateway-port"
        command = [*COMMAND, "serve", "--port", "0", "--port-file", str(port), "--cache", str(home / "cache")]
        command += ["--config", str(home / "gateway.toml"), "--timeout", "60"]
        tokens = {f"{name.upper()}_TOKEN": f"token-of-a-{name}" for name in CALLERS}
        log = enter((home / "gateway.log").open("wb"))
        variables = environment(home, LAB_KEY=PROVIDERS_KEY, **tokens)
        process = enter(kind_for({})(command, cwd=home, env=variables, stdout=log, stderr=log))
        open_until_the_end.callback(process.terminate)
        deadline = time.monotonic() + 20
        while not port.exists():
            said = (home / "gateway.log").read_text()
            assert process.poll() is None and time.monotonic() < deadline, f"the gateway did not start: {said}"
            time.sleep(0.02)
        yield Served(int(port.read_text()), provider, recorder)


def react(sent: Sent) -> tuple[int, bytes]:
    """A sound answer in the protocol that the path is of."""
    if sent.path.endswith("/messages"):
        return 200, anthropic_shapes.whole()
    if ":generateContent" in sent.path:
        return 200, gemini_shapes.whole()
    return 200, chat_shapes.whole()
