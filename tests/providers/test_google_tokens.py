"""A token for each kind of credentials, exchanged on loopback; refused in one line; no secret is told to anybody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gemini_shapes
import orjson
import pytest
from endpoints import transport
from google_server import (
    ACCOUNT,
    CLIENT_SECRET,
    PEM,
    TokenServer,
    authorized_user,
    refusal,
    service_account,
)
from msgspec import structs
from raw_server import RawServer, Visit, http
from tokens import REQUEST, SECRETS, fault_in, later, run, token_of

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, send
from millstream.providers.credentials.google import FOLDER, SERVER, GoogleAuthorizer, google_authorizer
from millstream.providers.credentials.google_tokens import CredentialsFile, MetadataServer
from millstream.providers.llm import vertex
from millstream.providers.llm.protocol import Target
from millstream.providers.transport.endpoint import ModelEndpoint

GOOGLE = Target("https://aiplatform.googleapis.com", "x", "gemini-2.5-flash", "vertex", project="p", region="global")
LOCAL = structs.replace(GOOGLE, base_url="http://127.0.0.1:1")


def by_account(server: TokenServer) -> GoogleAuthorizer:
    return GoogleAuthorizer(CredentialsFile("key.json", service_account(server.url)))


# --- the exchange ---


def test_a_service_account_signs_for_a_token_and_a_call_carries_it() -> None:
    seen: list[str] = []

    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            seen.append(request.decode())
            body = {"candidates": [{"content": {"parts": [{"text": request.decode()}]}, "finishReason": "STOP"}]}
            await visit.send(http(orjson.dumps(body)))

    async def scenario() -> tuple[Any, int]:
        async with TokenServer() as tokens, RawServer(handler) as model, transport() as over:
            target = structs.replace(GOOGLE, base_url=f"http://127.0.0.1:{model.port}")
            endpoint = ModelEndpoint(vertex.GEMINI, target, by_account(tokens), over, 5.0)
            request = endpoint.encode(Call("vertex/gemini-2.5-flash", "x"))
            results = [endpoint.decode(await send(endpoint, request)) for _ in range(3)]
            assert tokens.tokens[0] in seen[0]
            return results, tokens.exchanges

    results, exchanges = run(scenario())
    assert exchanges == 1
    assert "POST /v1beta1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:generate" in seen[0]
    for result in results:
        assert isinstance(result, Reply) and "Bearer [key]" in result.text and "ya29" not in result.text


def test_a_token_is_good_for_as_long_as_the_server_says() -> None:
    async def scenario(after_s: float) -> int:
        async with TokenServer(lasts_s=100) as tokens:
            authorizer = by_account(tokens)
            await token_of(authorizer)
            later(after_s)
            await token_of(authorizer)
            return tokens.exchanges

    assert run(scenario(45.0)) == 1 and run(scenario(95.0)) == 2


def test_a_persons_login_is_refreshed_and_their_project_pays() -> None:
    async def scenario() -> tuple[dict[str, str], list[dict[str, str]]]:
        async with TokenServer() as tokens:
            info = authorized_user(tokens.url)
            authorizer = GoogleAuthorizer(CredentialsFile("adc.json", info))
            return dict(await authorizer.headers(REQUEST)), tokens.bodies

    headers, bodies = run(scenario())
    assert headers["authorization"].startswith("Bearer ya29.canary-token-0")
    assert headers["x-goog-user-project"] == "persons-project"
    assert [body["grant_type"] for body in bodies] == ["refresh_token"]


def test_a_machine_of_googles_is_asked_for_its_own_account() -> None:
    async def scenario() -> str:
        async with TokenServer() as tokens:
            authorizer = google_authorizer({SERVER: tokens.host, FOLDER: "/nowhere"}, LOCAL)
            assert isinstance(authorizer, GoogleAuthorizer)
            return await token_of(authorizer)

    assert run(scenario()).startswith("ya29.canary-token-0")


def test_a_token_that_the_model_refuses_is_exchanged_for_another() -> None:
    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            is_first = b"canary-token-0" in request
            await visit.send(http(b"{}", status="401 No") if is_first else http(gemini_shapes.whole()))

    async def scenario() -> tuple[list[Reply | Fault], int]:
        async with TokenServer() as tokens, RawServer(handler) as model, transport() as over:
            target = structs.replace(GOOGLE, base_url=f"http://127.0.0.1:{model.port}")
            endpoint = ModelEndpoint(vertex.GEMINI, target, by_account(tokens), over, 5.0)
            request = endpoint.encode(Call("vertex/gemini-2.5-flash", "x"))
            results = []
            for _ in range(3):
                results.append(endpoint.decode(await send(endpoint, request)))
                later(60)
            return results, tokens.exchanges

    (first, second, third), exchanges = run(scenario())
    # The first was too young to be replaced before its time.
    assert isinstance(first, Fault) and first.action == "confirm"
    assert isinstance(second, Fault) and isinstance(third, Reply) and exchanges == 2


# --- what goes wrong ---


def test_a_refused_exchange_is_a_dead_key_in_one_line_that_says_what_to_do() -> None:
    async def scenario(info: Callable[[str], dict[str, Any]]) -> Fault:
        async with TokenServer(answer=refusal()) as tokens:
            return await fault_in(GoogleAuthorizer(CredentialsFile("key.json", info(tokens.url))))

    fault = run(scenario(service_account))
    assert (fault.kind, fault.action) == ("rejected", "confirm")
    assert fault.detail == (
        "Google refuses the credentials in key.json (invalid_grant: Invalid JWT Signature.): "
        "check that the account and its key still exist, or give another key"
    )
    assert "log in with `gcloud auth application-default login`" in run(scenario(authorized_user)).detail


def test_a_server_that_gives_back_what_it_was_sent_brings_nothing_to_light() -> None:
    async def scenario(info: dict[str, Any], url: str) -> str:
        return (await fault_in(GoogleAuthorizer(CredentialsFile("key.json", {**info, "token_uri": url})))).detail

    async def both() -> list[str]:
        async def echo(visit: Visit) -> None:
            while (request := await visit.request()) is not None:
                said = request.decode().partition("\r\n\r\n")[2]
                assertions.append(said)
                bare = CLIENT_SECRET if "refresh_token=" in said else PEM
                await visit.send(refusal(f"I do not like {bare} nor {said}"))

        assertions: list[str] = []
        async with RawServer(echo) as server:
            url = f"http://127.0.0.1:{server.port}/token"
            details = [await scenario(service_account(url), url), await scenario(authorized_user(url), url)]
            assert "assertion=" in assertions[0] and "refresh_token=" in assertions[1]
            for sent in assertions:
                for word in sent.replace("&", "=").split("="):
                    assert len(word) < 32 or all(word not in detail for detail in details)
            return details

    assert all("[key]" in detail for detail in run(both()))


@pytest.mark.parametrize("status", ["500 Oops", "503 Busy", "429 Slow", "408 Late"])
def test_a_token_endpoint_that_is_ill_is_asked_again_by_the_lane_alone(status: str) -> None:
    async def scenario() -> tuple[Fault, int]:
        async with TokenServer(answer=http(b"{}", status=status)) as tokens:
            return await fault_in(by_account(tokens)), tokens.exchanges

    fault, exchanges = run(scenario())
    assert (fault.kind, fault.action, exchanges) == ("connect", "retry", 1)
    assert f"answered {status[:3]}" in fault.detail


def test_a_failure_that_is_the_token_endpoints_own_is_no_refusal() -> None:
    async def scenario() -> tuple[Fault, int]:
        answer = http(b'{"error":"temporarily_unavailable"}', status="400 Bad Request")
        async with TokenServer(answer=answer) as tokens:
            return await fault_in(by_account(tokens)), tokens.exchanges

    fault, exchanges = run(scenario())
    assert (fault.kind, fault.action, exchanges) == ("connect", "retry", 1)


@pytest.mark.parametrize("answer", [b"{}", b"[]", b"<html>", b"null", b'{"access_token":"x","expires_in":"soon"}'])
def test_an_answer_that_is_no_token_is_none(answer: bytes) -> None:
    async def scenario() -> Fault:
        async with TokenServer(answer=http(answer)) as tokens:
            return await fault_in(by_account(tokens))

    assert run(scenario()).action in ("retry", "confirm")


def test_a_redirect_is_not_followed_with_what_proves_who_one_is() -> None:
    async def scenario() -> tuple[Fault, int]:
        async with TokenServer() as elsewhere:
            moved = http(b"", f"Location: {elsewhere.url}", status="307 Moved")
            async with TokenServer(answer=moved) as tokens:
                return await fault_in(by_account(tokens)), elsewhere.exchanges

    fault, exchanges = run(scenario())
    assert (fault.action, exchanges) == ("confirm", 0)


def test_a_token_endpoint_that_can_not_be_reached_is_a_connection_that_failed() -> None:
    for url in ("http://127.0.0.1:1/token", "ftp://127.0.0.1/token", "nonsense"):
        fault = run(fault_in(GoogleAuthorizer(CredentialsFile("key.json", service_account(url)))))
        assert (fault.kind, fault.action) == ("connect", "retry") and "can't be reached" in fault.detail


def test_a_machine_that_is_none_of_googles_is_told_how_to_log_in() -> None:
    fault = run(fault_in(GoogleAuthorizer(MetadataServer("127.0.0.1:1"))))
    assert (fault.kind, fault.action) == ("rejected", "confirm")
    assert "no Google credentials found" in fault.detail and "gcloud auth application-default login" in fault.detail


def test_representations_hold_no_secret() -> None:
    async def scenario() -> str:
        async with TokenServer() as tokens:
            authorizer = by_account(tokens)
            before = repr(authorizer)
            await token_of(authorizer)
            return before + repr(authorizer) + repr(authorizer._token)

    said = run(scenario())
    assert "a token" in said and "no token" in said
    assert not any(secret in said for secret in SECRETS) and ACCOUNT not in said


WITHOUT_REQUESTS = """
import sys
sys.modules["requests"] = None
from millstream.providers.credentials.google_tokens import CredentialsFile, MetadataServer, NoToken
from google_server import authorized_user, service_account
url = "http://127.0.0.1:1/token"
account, person = service_account(url), authorized_user(url)
outside = {"audience": "//iam.googleapis.com/x", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
           "token_url": url, "type": "external_account", "credential_source": {"file": "/dev/null"}}
on_behalf = {"type": "impersonated_service_account", "source_credentials": person,
             "service_account_impersonation_url": "http://127.0.0.1:1/v1/projects/-/serviceAccounts/a@b:generateAccessToken"}
for source in [MetadataServer("127.0.0.1:1"), *(CredentialsFile("x", info) for info in (account, person, on_behalf))]:
    try:
        source.fetch()
    except NoToken as error:
        assert "can't be reached" in str(error), error
CredentialsFile("x", outside)
print("ok")
"""


def test_nothing_is_needed_that_is_only_installed_for_tests() -> None:
    support = str(Path(__file__).parent.parent / "support")
    command = [
        sys.executable,
        "-P",
        "-W",
        "error",
        "-c",
        f"import sys; sys.path.append({support!r})\n{WITHOUT_REQUESTS}",
    ]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout == "ok\n", told.stderr
