"""A limit on cost holds against the bill of a provider that is not this program's own (billing_server): whatever its
usage reports, whatever stands in the request, and whatever is killed.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from billed_programs import KINDS, asked, run_and_kill
from billing_server import READ, USAGES, WRITTEN, BillingServer
from command_line import environment
from gateways import Client, question
from msgspec import structs
from torture import SEED, record, times

import millstream as ms
from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.interfaces.gateway.serving import RunningGateway, ServeOptions
from millstream.providers.models import Facts
from millstream.providers.table import Provider

FAMILIES = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
MODEL, WINDOW = "lab/m", 200_000
PRICE = ms.Price(READ * 1e6, WRITTEN * 1e6)
TEXT = "What is to be said of this? " * 12
# The highest cost of a text is less than a hundredth of this.
TEXT_CAP, PART_CAP = 0.08, 0.5
# Only a stream has a usage that is too early.
USAGE_CASES = [case for case in product(KINDS, USAGES, (False, True)) if case[1] != "begun" or case[2]]
DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
    ],
    "responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_file", "file_url": "https://a.example/b.pdf"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]},
    ],
    "messages": [
        {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    ],
    "gemini": [{"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}}],
}
TOOLS: dict[str, dict[str, Any]] = {
    "chat": {"type": "web_search"},
    "responses": {"type": "web_search"},
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "gemini": {"googleSearch": {}},
}
STORED = [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}]
PART_CASES = [
    *(
        (protocol, part, usage)
        for protocol in KINDS
        for part in DOCUMENTS[protocol]
        for usage in ("whole", "empty", "total")
    ),
    *(("responses", fields, usage) for fields in STORED for usage in ("whole", "zeros")),
    *((protocol, "image", usage) for protocol in ("chat", "messages") for usage in ("whole", "input")),
]
chance = random.Random(SEED)
SHORT_USAGES = chance.sample(USAGE_CASES, times(12, len(USAGE_CASES)))
SHORT_PARTS = chance.sample(PART_CASES, times(6, len(PART_CASES)))


def settings_of(server: BillingServer, protocol: str, usage: str, cap: float, cache: Path, **more: Any) -> ms.Settings:
    return ms.Settings(
        providers={"lab": Provider(f"http://127.0.0.1:{server.port}/{usage.replace(' ', '_')}", kind=KINDS[protocol])},
        lanes=(ms.Lane(MODEL, concurrency=16),),
        models={MODEL: Facts(max_output=200, window=WINDOW)},
        prices={MODEL: PRICE},
        max_cost=cap,
        cache=cache,
        **more,
    )


@pytest.mark.parametrize(
    ("protocol", "usage", "stream"),
    SHORT_USAGES,
    ids=[f"{p}-{u}-{'stream' if s else 'whole'}" for p, u, s in SHORT_USAGES],
)
def test_a_bill_stays_under_the_limit_whatever_the_usage_says(
    tmp_path: Path, protocol: str, usage: str, stream: bool
) -> None:
    with BillingServer() as server:
        calls = [ms.Call(MODEL, f"{number}: {TEXT}", max_tokens=100, stream=stream) for number in range(400)]
        outcomes, spent, at_worst = asked(settings_of(server, protocol, usage, TEXT_CAP, tmp_path), calls)
        assert 0 < server.dollars <= spent + 1e-9 <= TEXT_CAP + 2e-9
        is_reported = usage == "whole" or (usage == "input and total" and protocol != "messages")
        if is_reported:
            assert server.dollars >= 0.95 * TEXT_CAP and at_worst == 0
        else:
            assert at_worst == pytest.approx(spent)
        # From the cache it costs nothing, and what was not reported stays unknown.
        replayed, again, _ = asked(settings_of(server, protocol, usage, 1e-6, tmp_path), calls[: len(outcomes) // 2])
        assert again == 0 and all(outcome.cached and outcome.cost == 0 for outcome in replayed)
        for outcome in replayed:
            assert outcome.reply is not None
            has_all = outcome.reply.usage is not None and outcome.reply.usage.is_whole
            assert has_all == is_reported
    record("11", 1, 1, f"of a limit of ${TEXT_CAP} at most ${server.dollars:.4f} was billed", f"{SEED}")


@pytest.mark.parametrize(("protocol", "part", "usage"), SHORT_PARTS, ids=[f"{p}-{u}" for p, _, u in SHORT_PARTS])
def test_a_bill_stays_under_the_limit_whatever_stands_in_the_request(
    tmp_path: Path, protocol: str, part: Any, usage: str
) -> None:
    with BillingServer(delay_s=0.01) as server:
        outcomes, spent, _ = asked(
            settings_of(server, protocol, usage, PART_CAP, tmp_path), [_call_with(protocol, part, n) for n in range(60)]
        )
        assert outcomes and 0 < server.dollars <= spent + 1e-9 <= PART_CAP + 2e-9
    record("11", 1, 1, f"of a limit of ${PART_CAP} at most ${server.dollars:.4f} was billed", f"{SEED}")


def _call_with(protocol: str, part: Any, number: int) -> ms.Call:
    if part == "image":
        content: Any = (TEXT, ms.Image(f"https://a.example/{number}.png"))
    elif part in STORED:
        return ms.Call(MODEL, f"{number}: {TEXT}", max_tokens=100, extra=part)
    else:
        content = (f"{number}: {TEXT}", ms.Native(FAMILIES[protocol], part))
    return ms.Call(MODEL, [ms.Message("user", content)], max_tokens=100)


@pytest.mark.parametrize("protocol", KINDS)
def test_a_tool_that_the_provider_runs_and_a_reference_to_a_model_of_unknown_size_are_not_sent(
    tmp_path: Path, protocol: str
) -> None:
    with BillingServer() as server:
        tool = ms.Call(MODEL, TEXT, max_tokens=100, tools=[ms.Native(FAMILIES[protocol], TOOLS[protocol])])
        settings = settings_of(server, protocol, "whole", PART_CAP, tmp_path)
        (refused,), _, _ = asked(settings, [tool])
        assert refused.failure is not None and "runs the tool" in refused.failure.detail
        unknown = structs.replace(settings, models={MODEL: Facts(max_output=200)})
        (refused,), _, _ = asked(unknown, [_call_with(protocol, DOCUMENTS[protocol][0], 0)])
        assert refused.failure is not None and "window under" in refused.failure.detail
        assert server.calls == 0


def test_once_a_bill_is_above_the_highest_cost_only_what_was_in_flight_is_still_billed(tmp_path: Path) -> None:
    """A provider that counts more than the request can hold: no bound is known beforehand."""
    with BillingServer(delay_s=0.2, surcharge=30_000) as server:
        calls = [ms.Call(MODEL, f"{number}: {TEXT}", max_tokens=100) for number in range(400)]
        _, spent, _ = asked(settings_of(server, "chat", "whole", 0.1, tmp_path), calls)
        assert server.calls == 16 and server.after_first == 0
        assert spent == pytest.approx(server.dollars)


PROGRAM = """
import asyncio, sys, json
import millstream as ms
from millstream.providers.models import Facts
from millstream.providers.table import Provider

async def main():
    url, kind, cap, part = sys.argv[1], sys.argv[2], float(sys.argv[3]), json.loads(sys.argv[4])
    settings = ms.Settings(
        providers={"lab": Provider(url, kind=kind)}, lanes=(ms.Lane("lab/m", concurrency=16),),
        max_cost=cap, cache="cache", budget="money.budget",
        models={"lab/m": Facts(max_output=200, window=200_000)}, prices={"lab/m": ms.Price(1.0, 2.0)},
    )
    def content(number):
        text = f"{number}: " + "What is to be said of this? " * 12
        return text if part is None else (text, ms.Native(kind, part))
    calls = (ms.Call("lab/m", [ms.Message("user", content(n))], max_tokens=100) for n in range(1_000))
    async with ms.Engine(settings=settings) as engine:
        async for outcome in engine.run(calls):
            pass

try:
    asyncio.run(main())
except ms.Stopped as stopped:
    sys.exit(str(stopped))
"""
KILLED = [
    (protocol, part, usage)
    for protocol in KINDS
    for part in (None, DOCUMENTS[protocol][0])
    for usage in ("whole", "empty", "zeros", "total")
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("protocol", "part", "usage"), chance.sample(KILLED, times(1, len(KILLED))), ids=str)
def test_a_bill_stays_under_the_limit_over_kills(tmp_path: Path, protocol: str, part: Any, usage: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    cap = TEXT_CAP if part is None else PART_CAP
    with BillingServer(delay_s=0.05) as server:
        url = f"http://127.0.0.1:{server.port}/{usage}"
        command = [sys.executable, "-P", "program.py", url, KINDS[protocol], str(cap), json.dumps(part)]
        kills = times(2, 6)
        for _ in range(kills):
            run_and_kill(tmp_path, command, server, chance.randint(1, 30 if part is None else 3))
        subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=False)
        assert 0 < server.dollars <= cap
    record("11", kills, kills, f"of a limit of ${cap} at most ${server.dollars:.4f} was billed", f"{SEED}")


def test_what_was_learned_of_dearer_calls_holds_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with BillingServer(delay_s=0.2, surcharge=30_000) as server:
        url = f"http://127.0.0.1:{server.port}/whole"
        command = [sys.executable, "-P", "program.py", url, "openai", "1.0", "null"]
        run_and_kill(tmp_path, command, server, 17)  # the first bill is known
        first = server.calls
        for _ in range(times(2, 6)):
            run_and_kill(tmp_path, command, server, 1_000)
        assert server.dollars <= 1.0 and server.calls >= first
    record("11", 3, 3, f"of a limit of $1 at most ${server.dollars:.4f} was billed", f"{SEED}")


@pytest.mark.parametrize(("window", "status"), [(WINDOW, 200), (None, 400)])
def test_a_callers_limit_holds_where_300_requests_with_a_document_come_at_once(
    tmp_path: Path, window: int | None, status: int
) -> None:
    async def main(server: BillingServer) -> list[int]:
        settings = settings_of(server, "chat", "whole", 100.0, tmp_path / "cache")
        settings = structs.replace(
            settings,
            models={MODEL: Facts(max_output=200, window=window)},
            max_cost=None,
            environment={"SMALL": "token-of-small"},
        )
        callers = (CallerSettings("small", "SMALL", max_cost=PART_CAP),)
        gateway = RunningGateway(settings, GatewaySettings(callers=callers), ServeOptions("127.0.0.1", 0))
        async with gateway as running:
            parts = [{"type": "text", "text": TEXT}, DOCUMENTS["chat"][0]]
            said = [
                question("", model=MODEL, messages=[{"role": "user", "content": parts}], seed=number)
                for number in range(300)
            ]

            async def one(body: dict[str, Any]) -> int:
                async with Client(running.port) as client:
                    client.post(body, headers={"Authorization": "Bearer token-of-small"})
                    return (await client.answer()).status

            return await asyncio.gather(*map(one, said))

    with BillingServer(delay_s=0.02) as server:
        statuses = asyncio.run(main(server))
        assert server.dollars <= PART_CAP and status in statuses
        assert (server.dollars > 0) == (window is not None)
