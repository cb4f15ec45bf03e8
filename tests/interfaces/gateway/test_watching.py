"""A person who watches a gateway: a line a request, and a page for a browser, neither with a secret in it."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest
from gateways import ANN, MODEL, TOKEN, Answer, gateway, get, post, question, settings_to, until

from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.version import VERSION
from millstream.format import cost_of_calls
from millstream.interfaces.gateway.request_log import RequestLog
from millstream.interfaces.gateway.serving import RunningGateway, ServeOptions
from millstream.interfaces.gateway.status_page import PageTable, status_page
from millstream.providers.llm.serve_dialect import Problem

# In the machine's own time zone.
NOON = time.mktime((2026, 7, 1, 12, 0, 1, 0, 0, -1))
HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9"}


def outcome(*, cached: bool, cost: float | None) -> Outcome:
    reply = Reply("A", Usage(1_200, 30), "stop", raw_hash="")
    return Outcome(Call(MODEL, "hi"), reply=reply, key="", cached=cached, cost=cost)


SENT, STORED, UNPRICED = (
    outcome(cached=False, cost=0.0013),
    outcome(cached=True, cost=None),
    outcome(cached=False, cost=None),
)


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([SENT], "1,200 + 30 tokens  $0.0013"),
        ([STORED], "1,200 + 30 tokens  cached"),
        ([UNPRICED], "1,200 + 30 tokens  cost unknown"),
        # Two samples, one of which is stored: the sums of both, and the cost of the one that was sent.
        ([SENT, STORED], "2,400 + 60 tokens  $0.0013  1 of 2 cached"),
        ([SENT, UNPRICED], "2,400 + 60 tokens  cost unknown"),
        ([], "timeout"),
    ],
)
def test_a_line_tells_time_model_status_duration_tokens_and_cost(outcomes: list[Outcome], told: str) -> None:
    lines: list[str] = []
    log = RequestLog(lines.append, lambda: NOON)
    log.ended("gpt-4o", 200, 0.532, outcomes, "" if outcomes else "timeout")
    assert lines == [f"12:00:01  gpt-4o  200  532 ms  {told}"]


def test_a_refused_request_is_a_line_without_its_query() -> None:
    lines: list[str] = []
    RequestLog(lines.append, lambda: NOON).refused("GET", "/v1/nothing", Problem(404, "not_found", "there is no"))
    assert lines == ["12:00:01  GET  /v1/nothing  404  not_found"]


def test_a_gateway_logs_every_request_and_no_secret(tmp_path: Path) -> None:
    lines: list[str] = []

    async def scenario() -> None:
        settings = GatewaySettings(token="TOKEN")
        async with gateway(tmp_path / "first", settings) as both:
            place = ServeOptions("127.0.0.1", 0, log=lines.append)
            async with RunningGateway(settings_to(both.provider.base_url, tmp_path), settings, place) as running:
                port = running.port
                await post(port, question("a secret question"), authorization=f"Bearer {TOKEN}")
                await post(port, question(), authorization="Bearer wrong-token-of-mine")
                await get(port, f"/nothing?key={TOKEN}")

    asyncio.run(scenario())
    (answered, refused, unknown) = (line.split("  ")[1:] for line in lines)
    assert answered[:2] == [MODEL, "200"] and answered[3].endswith(" tokens") and answered[4].startswith("$")
    assert refused == ["POST", "/v1/chat/completions", "401", "unauthorized"]
    assert unknown == ["GET", "/nothing", "404", "not_found"]
    assert not [line for line in lines if TOKEN in line or "wrong-token" in line or "secret" in line]


def test_the_page_has_counts_models_and_last_requests(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with gateway(tmp_path) as both:
            for _ in range(2):
                await post(both.port, question("a secret question"), X_Millstream_Trial="0")
            await post(both.port, question("a secret question", model="nowhere/x"))
            await get(both.port, "/<b>nothing</b>?key=secret")
            # An answer is sent before it is stored, and is in flight until then.
            await until(lambda: both.running.engine.scheduler.under_way == 0)
            return await get(both.port, "/", **HTML)

    page = asyncio.run(scenario())
    assert page.status == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode()
    heads, counts, *_ = text.partition("<table>")[2].partition("</table>")[0].split("</tr><tr>")
    assert heads.count("<th ") == 6
    # Two requests with one sample: one call, and the second answer from the cache.
    assert counts == "".join(f'<td class="number">{number}</td>' for number in (3, 2, 1, 1, 0, 1)) + "</tr>"
    assert text.count("<script") == 1 and "default-src 'none'; script-src 'sha256-" in text
    assert f"Version {VERSION}, running for " in text
    row = re.search(rf"<td>{MODEL}</td>(.*?)</tr>", text)
    assert row is not None
    sent, read, written, cost, *rest = re.findall(r"<td[^>]*>(.*?)</td>", row[1])
    # A dollar for each million tokens, as the price of this model says.
    assert sent == "1" and float(cost.removeprefix("$")) == pytest.approx((int(read) + int(written)) / 1e6, rel=0.05)
    assert rest == ["0", "1", "sends"]
    last, _, failed = text.partition("Last requests without an answer")
    assert failed.count("<tr>") == 3 and last.partition("Last requests")[2].count("<tr>") == 5
    assert "<td>GET  /&lt;b&gt;nothing&lt;/b&gt;</td><td>404</td><td></td><td>not_found</td>" in failed
    assert "secret" not in text


def test_the_page_counts_by_hand() -> None:
    models = PageTable("Models", ("model", "in flight", "state"), [("<b>x/y</b>", 2_000, "stopped: <key>")], "A note.")
    cost = cost_of_calls(1.25, 397, 7)
    text = status_page("Version 1.", {"requests": 1_000, "calls sent": 397}, cost, [models]).decode()
    counts = '<td class="number">1,000</td><td class="number">397</td></tr>'
    assert counts in text and "$1.2500 and 7 calls without a price" in text
    assert '<td>&lt;b&gt;x/y&lt;/b&gt;</td><td class="number">2,000</td><td>stopped: &lt;key&gt;</td>' in text


def test_the_last_requests_are_kept_without_their_answers() -> None:
    log = RequestLog()
    for number in range(50):
        log.ended(MODEL, 200, 0.1, [outcome(cached=False, cost=None)])
        log.ended(MODEL, 500 + number, 0.1, [])
    assert len(log.last) == len(log.failed) == 20
    assert [one.status for one in log.failed] == list(range(549, 529, -1))
    assert not any(isinstance(part, Outcome) for one in log.last for part in one.calls)


def test_embeddings_are_sent_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with gateway(tmp_path) as both:
            return await post(both.port, {"model": MODEL, "input": "x"}, path="/v1/embeddings")

    answer = asyncio.run(scenario())
    assert answer.status == 404
    assert answer.json["error"]["message"].endswith("send embeddings to the provider itself")


def test_the_page_is_for_browsers_of_those_who_may_ask(tmp_path: Path) -> None:
    settings = GatewaySettings(callers=(CallerSettings("ann", "ANN"),))

    async def scenario() -> list[int]:
        async with gateway(tmp_path, settings) as both:
            answers = [
                await get(both.port, "/", **HTML),
                await get(both.port, f"/?key={ANN}", **HTML),
                await get(both.port, f"/?key={ANN}", **HTML, Sec_Fetch_Site="none"),
                await get(both.port, f"/?key={ANN}", **HTML, Sec_Fetch_Site="cross-site"),
                await get(both.port, f"/?key={ANN}"),
            ]
            assert not [answer for answer in answers if ANN.encode() in answer.body]
            return [answer.status for answer in answers]

    # Without the token 401; a page of another site 403; a program that asks for no HTML gets the page too.
    assert asyncio.run(scenario()) == [401, 200, 200, 403, 200]
