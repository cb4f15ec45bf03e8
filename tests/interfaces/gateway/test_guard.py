"""Nobody gets in from a web page, under a foreign name or without the token: by the rule, and at the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from gateways import ANN, CHAT, TOKEN, Client, gateway, question, request
from msgspec import structs

from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.fixtures.provider import Options
from millstream.interfaces.http.guard import CallerToken, GuardRules, digest_of, judge
from millstream.interfaces.http.http_request import RequestHead
from millstream.providers.llm.serve_dialect import Problem

PORT = 8400
OPEN = GuardRules(PORT)
CLOSED = GuardRules(PORT, tokens=(CallerToken("", digest_of(TOKEN)), CallerToken("ann", digest_of(ANN))))

OWN_HOSTS = (
    *("127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "LocalHost:{}", "127.0.0.2:{}", "127.255.255.254:{}"),
    *("[::1]:{}", "[0:0:0:0:0:0:0:1]:{}", "[0000::0001]:{}"),
)
FOREIGN_HOSTS = (
    *("evil.example:{}", "evil.example", "localhost.evil.example:{}", "127.0.0.1.evil.example:{}", "localhost.:{}"),
    *("127.0.0.1.:{}", "127.0.0.1", "localhost", "127.0.0.1:1", "localhost:80", "localhost:0{}", "localhost:"),
    *("user@localhost:{}", "localhost:{}@evil.example", "evil.example#localhost:{}", "localhost:{}/x", "0.0.0.0:{}"),
    *("127.1:{}", "2130706433:{}", "0x7f000001:{}", "0177.0.0.1:{}", "[::]:{}", "[::ffff:127.0.0.1]:{}", "::1:{}"),
    *("[::1%25lo]:{}", "[127.0.0.1]:{}", "192.168.1.1:{}", "10.0.0.1:{}", "169.254.169.254:{}", "", " ", "*", "null"),
    *("localhost:{},evil.example", "local host:{}", "ⓛocalhost:{}", "http://localhost:{}", "localhost:99999"),
)
ORIGINS = (
    *("http://evil.example", "https://evil.example:443", "null", "http://localhost", "http://localhost:{}"),
    *("http://127.0.0.1:{}", "file://", "chrome-extension://abc", "", "http://page.example.evil.example"),
)
SITES = ("cross-site", "same-site", "CROSS-SITE", "", "unknown")
METHODS = ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "post", "get")
TARGETS = ("*", "http://127.0.0.1:{}/v1/models", "http://evil.example/v1/models", "https://localhost/", "localhost:80")
TYPES = (
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""),
    *("text/plain;application/json", "application/json, text/plain", "application/jsonp", "application/xml"),
)


class Case(NamedTuple):
    """A request that has to be refused."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]


def host(name: str = "127.0.0.1:{}") -> tuple[str, str]:
    return ("Host", name)


JSON = ("Content-Type", "application/json")
BEARER = ("Authorization", f"Bearer {TOKEN}")


def refused() -> Iterator[Case]:
    """All with a token that is right, so that it is something else that refuses them."""
    asking, looking = ("POST", CHAT), ("GET", "/v1/models")
    for name, (method, target) in product(FOREIGN_HOSTS, (asking, looking, ("GET", "/metrics"))):
        yield Case(method, target, (host(name), JSON, BEARER))
    for origin, (method, target) in product(ORIGINS, (asking, looking)):
        yield Case(method, target, (host(), JSON, BEARER, ("Origin", origin)))
        yield Case(method, target, (host(), JSON, BEARER, ("origin", origin), ("Sec-Fetch-Site", "same-origin")))
    for site, (method, target) in product(SITES, (asking, looking)):
        for mode in ("cors", "no-cors", "navigate", "websocket"):
            yield Case(method, target, (host(), JSON, BEARER, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode)))
    for method, (_, target) in product(METHODS, (asking, looking)):
        yield Case(method, target, (host(), JSON, BEARER))
        yield Case(method, target, (host(), JSON, BEARER, ("Access-Control-Request-Method", "POST")))
    for target, method in product(TARGETS, ("GET", "POST")):
        yield Case(method, target, (host(), JSON, BEARER))
    for media_type, (name, value) in product(TYPES, (host(), host("localhost:{}"))):
        yield Case("POST", CHAT, ((name, value), ("Content-Type", media_type), BEARER))
    for twice in (host(), host("localhost:{}"), host("evil.example")):
        yield Case("POST", CHAT, (host(), twice, JSON, BEARER))
        yield Case("POST", CHAT, (twice, ("X-Forwarded-Host", "localhost"), host(), JSON, BEARER))
    yield Case("POST", CHAT, (JSON, BEARER))
    yield Case("POST", CHAT, (host("evil.example"), ("X-Forwarded-Host", "127.0.0.1:{}"), JSON, BEARER))
    yield Case("POST", CHAT, (host("evil.example"), ("Forwarded", "host=localhost"), JSON, BEARER))
    yield Case("POST", CHAT, (host(), JSON, JSON, BEARER))


def unknown() -> Iterator[Case]:
    """Sound requests without the token, or with something that is not quite it."""
    wrong = (TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "", "x", f"{TOKEN} {ANN}", f"{TOKEN},{ANN}", "tökén", "None")
    for secret in wrong:
        yield Case("POST", CHAT, (host(), JSON, ("Authorization", f"Bearer {secret}")))
        for name in ("x-api-key", "api-key", "x-goog-api-key"):
            yield Case("POST", CHAT, (host(), JSON, (name, secret)))
    yield Case("POST", f"{CHAT}?key={TOKEN}x", (host(), JSON))
    yield Case("POST", f"{CHAT}?KEY={TOKEN}", (host(), JSON))
    for scheme in ("Basic", "CallerToken", "", "Bearer:", "Digest"):
        yield Case("POST", CHAT, (host(), JSON, ("Authorization", f"{scheme} {TOKEN}".strip())))
    for name in ("Cookie", "X-Token", "X-Auth", "Proxy-Authorization", "X-Forwarded-Authorization"):
        yield Case("POST", CHAT, (host(), JSON, (name, f"Bearer {TOKEN}")))
    yield Case("POST", CHAT, (host(), JSON, ("X-Forwarded-For", "127.0.0.1")))
    yield Case("POST", CHAT, (host(), JSON, BEARER, ("x-api-key", ANN)))
    for target in ("/health", "/metrics", "/v1/models", "/run/x/v1/models", "/nowhere"):
        yield Case("GET", target, (host(),))


def at(case: Case, port: int) -> Case:
    headers = tuple((name, value.replace("{}", str(port))) for name, value in case.headers)
    return Case(case.method, case.target.replace("{}", str(port)), headers)


def seen(case: Case, remote: str = "127.0.0.1") -> RequestHead:
    found: dict[str, list[str]] = {}
    for name, value in at(case, PORT).headers:
        found.setdefault(name.lower(), []).append(value)
    return RequestHead(case.method, at(case, PORT).target, found, remote, "127.0.0.1")


def test_there_are_more_than_three_hundred_cases() -> None:
    assert len(list(refused())) + len(list(unknown())) > 300


def test_a_page_a_foreign_name_and_an_odd_request_are_refused_whatever_token_they_bring() -> None:
    for case in refused():
        judged = judge(seen(case), CLOSED)
        assert isinstance(judged, Problem) and judged.status in (400, 403, 405, 415), case
        assert isinstance(judge(seen(case), OPEN), Problem), case


def test_nobody_gets_in_without_the_token() -> None:
    for case in unknown():
        judged = judge(seen(case), CLOSED)
        assert isinstance(judged, Problem) and judged.status == 401, case
        assert TOKEN not in judged.message and ANN not in judged.message


@pytest.mark.parametrize("name", OWN_HOSTS)
def test_a_sound_request_is_answered_under_every_name_of_this_machine(name: str) -> None:
    assert judge(seen(Case("POST", CHAT, (host(name), JSON))), OPEN) == ""
    assert judge(seen(Case("POST", CHAT, (host(name), JSON, BEARER))), CLOSED) == ""


WAYS = (
    ("Authorization", f"Bearer {ANN}"),
    ("Authorization", f"bearer  {ANN} "),
    ("x-api-key", ANN),
    ("api-key", ANN),
    ("x-goog-api-key", ANN),
)


@pytest.mark.parametrize("way", WAYS)
def test_a_token_comes_in_every_way_that_clients_have(way: tuple[str, str]) -> None:
    assert judge(seen(Case("POST", CHAT, (host(), JSON, way))), CLOSED) == "ann"
    both = Case("POST", CHAT, (host(), JSON, way, ("x-api-key", "some-other-key-of-the-client")))
    assert judge(seen(both), CLOSED) == "ann"


def test_a_token_may_stand_in_the_query() -> None:
    assert judge(seen(Case("POST", f"{CHAT}?alt=sse&key={ANN}", (host(), JSON))), CLOSED) == "ann"


def test_without_a_token_any_key_is_taken_on_this_machine_and_none_from_another() -> None:
    asked = Case("POST", CHAT, (host(), JSON, ("x-api-key", "sk-anything")))
    assert judge(seen(asked), OPEN) == ""
    judged = judge(seen(asked, "192.168.1.9"), OPEN)
    assert isinstance(judged, Problem) and judged.status == 401


def test_hosts_and_origins_that_are_listed_get_in() -> None:
    rules = structs.replace(
        CLOSED, hosts=frozenset({"gw.example", "b.example:99"}), origins=frozenset({"https://p.example"})
    )
    for name in ("gw.example", "gw.example:1", "GW.example:8400", "b.example:99"):
        assert judge(seen(Case("POST", CHAT, (host(name), JSON, BEARER))), rules) == ""
    assert isinstance(judge(seen(Case("POST", CHAT, (host("b.example:98"), JSON, BEARER))), rules), Problem)
    page = (("Origin", "https://p.example"), ("Sec-Fetch-Site", "cross-site"))
    assert judge(seen(Case("POST", CHAT, (host(), JSON, BEARER, *page))), rules) == ""
    preflight = Case("OPTIONS", CHAT, (host(), *page, ("Access-Control-Request-Method", "POST")))
    assert isinstance(judge(seen(preflight), rules), Problem)


def test_a_program_that_says_how_it_fetches_is_no_page() -> None:
    """As the fetch of Node does."""
    assert judge(seen(Case("POST", CHAT, (host(), JSON, ("Sec-Fetch-Mode", "cors")))), OPEN) == ""
    typed = Case("GET", "/health", (host(), ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")))
    assert judge(seen(typed), OPEN) == ""


def test_the_address_that_a_connection_came_to_is_ours() -> None:
    own = RequestHead("GET", "/health", {"host": ["10.1.2.3:8400"], "x-api-key": [ANN]}, "10.9.9.9", "10.1.2.3")
    assert judge(own, CLOSED) == "ann"
    assert isinstance(judge(structs.replace(own, local="10.1.2.4"), CLOSED), Problem)


def test_at_the_socket_none_of_them_gets_anything(tmp_path: Path) -> None:
    """None reaches the provider, none is told a model or that the gateway is well."""
    callers = GatewaySettings(token="TOKEN", callers=(CallerSettings("ann", "ANN"),))

    async def ask(port: int, case: Case) -> int:
        sent = at(case, port)
        body = b'{"model":"lab/open","messages":[{"role":"user","content":"hi"}]}' if sent.method == "POST" else b""
        async with Client(port) as client:
            client.send(request(sent.method, sent.target, sent.headers, body))
            answer = await asyncio.wait_for(client.answer(), 10)
        assert not answer.is_cached and b'"ok"' not in answer.body and b"owned_by" not in answer.body, sent
        assert "access-control-allow-origin" not in answer.headers
        return answer.status

    async def scenario() -> None:
        async with gateway(tmp_path, callers, Options()) as both:
            for case in refused():
                assert await ask(both.port, case) in (400, 403, 404, 405, 415), case
            for case in unknown():
                assert await ask(both.port, case) == 401, case
            assert both.calls == 0
            async with Client(both.port) as client:
                client.post(question(), headers={"Authorization": f"Bearer {TOKEN}"})
                assert (await client.answer()).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 60))
