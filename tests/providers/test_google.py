"""Google credentials: found, exchanged for a token on loopback, renewed in time, refused in one line, told nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest
from endpoints import transport
from google_server import (
    ACCOUNT,
    CLIENT_SECRET,
    PEM,
    REFRESH_TOKEN,
    TokenServer,
    authorized_user,
    refusal,
    service_account,
    written,
)
from msgspec import structs
from raw_server import RawServer, Visit, http

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, Request, SendError
from millstream.providers.authorizer import NO_CREDENTIALS, CredentialsError
from millstream.providers.endpoint import ModelEndpoint
from millstream.providers.google import FILE, FOLDER, SERVER, GoogleAuthorizer, google_authorizer, located
from millstream.providers.google_tokens import CredentialsFile, MetadataServer, NoToken, Token
from millstream.providers.llm import vertex
from millstream.providers.llm.protocol import Target

T = TypeVar("T")
REQUEST = Request("", "", b"", b"{}", b"", b"")
GOOGLE = Target("https://aiplatform.googleapis.com", "x", "gemini-2.5-flash", "vertex", project="p", region="global")
LOCAL = structs.replace(GOOGLE, base_url="http://127.0.0.1:1")
SECRETS = (PEM, PEM.splitlines()[3], REFRESH_TOKEN, CLIENT_SECRET, "ya29.canary")


class ShiftedLoop(asyncio.SelectorEventLoop):
    """A clock that can be set forward."""

    shift_s = 0.0

    def time(self) -> float:
        return super().time() + self.shift_s


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        return runner.run(work)


def later(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ShiftedLoop)
    loop.shift_s += seconds


async def token_of(authorizer: GoogleAuthorizer) -> str:
    return (await authorizer.headers(REQUEST))["authorization"].removeprefix("Bearer ")


async def renewed(authorizer: GoogleAuthorizer, last: str) -> None:
    for _ in range(10_000):
        if await token_of(authorizer) != last:
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"{last} is still in use")


async def fault_in(authorizer: GoogleAuthorizer) -> Fault:
    with pytest.raises(SendError) as raised:
        await authorizer.headers(REQUEST)
    fault = raised.value.fault
    assert "\n" not in fault.detail and not any(secret in repr(fault) for secret in SECRETS)
    assert fault.quota == "refund"
    return fault


def by_account(server: TokenServer) -> GoogleAuthorizer:
    return GoogleAuthorizer(CredentialsFile("key.json", service_account(server.url)))


class Scripted:
    """A source whose tokens are told apart by their number; `failing` is what it raises instead."""

    name = "a script"
    secrets = ("a-secret-that-never-changes",)

    def __init__(self, lasts_s: float = 3600.0) -> None:
        self.lasts_s = lasts_s
        self.fetched = 0
        self.failing: NoToken | None = None
        self.threads: set[int] = set()
        self.may_go = threading.Event()
        self.may_go.set()

    def fetch(self) -> Token:
        self.may_go.wait(10)
        self.threads.add(threading.get_ident())
        if self.failing is not None:
            raise self.failing
        self.fetched += 1
        secret = f"token-{self.fetched}"
        return Token(secret, {"authorization": f"Bearer {secret}"}, self.lasts_s)


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
            results = [endpoint.decode(await endpoint.send(request)) for _ in range(3)]
            assert tokens.tokens[0] in seen[0]
            return results, tokens.exchanges

    results, exchanges = run(scenario())
    assert exchanges == 1
    assert "POST /v1beta1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:generate" in seen[0]
    for result in results:
        assert isinstance(result, Reply) and "Bearer [key]" in result.text and "ya29" not in result.text


def test_a_thousand_calls_at_once_make_one_exchange_and_leave_the_loop_alone() -> None:
    async def scenario() -> tuple[set[str], int, int]:
        async with TokenServer(delay_s=0.05) as tokens:
            authorizer = by_account(tokens)
            found = await asyncio.gather(*(token_of(authorizer) for _ in range(1_000)))
            return set(found), tokens.exchanges, len(tokens.tokens)

    found, exchanges, given = run(scenario())
    assert (len(found), exchanges, given) == (1, 1, 1)


def test_a_token_is_fetched_in_another_thread() -> None:
    source = Scripted()
    run(token_of(GoogleAuthorizer(source)))
    assert threading.get_ident() not in source.threads and len(source.threads) == 1


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


# --- renewal ---


def test_a_token_is_renewed_before_it_ends_while_calls_go_on_with_the_old_one() -> None:
    async def scenario() -> None:
        source = Scripted()
        authorizer = GoogleAuthorizer(source)
        assert await token_of(authorizer) == "token-1"
        later(3600 - 10 - 301)
        assert await token_of(authorizer) == "token-1" and source.fetched == 1
        source.may_go.clear()
        later(2)
        # Nobody waits for the exchange that has begun, and none begins beside it.
        assert [await token_of(authorizer) for _ in range(5)] == ["token-1"] * 5
        source.may_go.set()
        await renewed(authorizer, "token-1")
        assert await token_of(authorizer) == "token-2" and source.fetched == 2

    run(scenario())


def test_a_token_that_has_ended_is_never_sent() -> None:
    async def scenario() -> None:
        source = Scripted()
        authorizer = GoogleAuthorizer(source)
        await token_of(authorizer)
        later(3600 - 10)
        assert await token_of(authorizer) == "token-2"

    run(scenario())


def test_a_renewal_that_fails_costs_no_call_while_the_old_token_is_good_and_is_tried_again_with_pauses() -> None:
    async def scenario() -> None:
        source = Scripted()
        authorizer = GoogleAuthorizer(source)
        await token_of(authorizer)
        source.failing = NoToken("not now", is_final=False)
        later(3600 - 200)
        for _ in range(10):
            assert await token_of(authorizer) == "token-1"
            await asyncio.sleep(0.005)
        source.failing = None
        assert await token_of(authorizer) == "token-1" and source.fetched == 1
        later(11)
        await renewed(authorizer, "token-1")
        assert source.fetched == 2

    run(scenario())


def test_a_token_that_lasts_seconds_is_used_for_half_of_them() -> None:
    async def scenario() -> None:
        authorizer = GoogleAuthorizer(Scripted(lasts_s=4.0))
        assert await token_of(authorizer) == "token-1"
        later(1.9)
        assert await token_of(authorizer) == "token-1"
        later(0.2)
        assert await token_of(authorizer) == "token-2"

    run(scenario())


def test_a_refused_token_is_replaced_but_not_by_one_for_each_call_that_had_it() -> None:
    async def scenario() -> None:
        source = Scripted()
        authorizer = GoogleAuthorizer(source)
        await token_of(authorizer)
        authorizer.refused()
        assert await token_of(authorizer) == "token-1"  # it is as new as any that could be had
        later(60)
        for _ in range(100):
            authorizer.refused()
        assert await token_of(authorizer) == "token-2"
        authorizer.refused()
        assert await token_of(authorizer) == "token-2" and source.fetched == 2

    run(scenario())


def test_who_waits_may_be_cancelled_and_the_others_get_their_token() -> None:
    async def scenario() -> None:
        source = Scripted()
        source.may_go.clear()
        authorizer = GoogleAuthorizer(source)
        tasks = [asyncio.create_task(token_of(authorizer)) for _ in range(5)]
        await asyncio.sleep(0.01)
        tasks[0].cancel()
        await asyncio.sleep(0.01)
        source.may_go.set()
        assert await asyncio.gather(*tasks[1:]) == ["token-1"] * 4 and source.fetched == 1
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    run(scenario())


def test_answers_to_the_last_token_are_still_cleared_of_it() -> None:
    async def scenario() -> tuple[str, ...]:
        authorizer = GoogleAuthorizer(Scripted())
        for _ in range(3):
            await token_of(authorizer)
            later(4000)
        return authorizer.secrets

    assert run(scenario()) == ("a-secret-that-never-changes", "token-2", "token-3")


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
                await visit.send(refusal(f"I do not like {said} nor {CLIENT_SECRET} nor {PEM}"))

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


def test_a_failure_is_everybodys_and_the_next_call_asks_anew() -> None:
    async def scenario() -> None:
        source = Scripted()
        source.failing = NoToken("no", is_final=True)
        authorizer = GoogleAuthorizer(source)
        results = await asyncio.gather(*(token_of(authorizer) for _ in range(100)), return_exceptions=True)
        assert len(source.threads) == 1 and all(isinstance(one, SendError) for one in results)
        source.failing = None
        assert await token_of(authorizer) == "token-1"

    run(scenario())


# --- where credentials are found ---


def test_the_file_that_is_named_comes_before_the_one_that_gcloud_wrote(tmp_path: Path) -> None:
    named = written(tmp_path, service_account("http://127.0.0.1:1/token"), "mine.json")
    gclouds = written(tmp_path, authorized_user("http://127.0.0.1:1/token"))
    both = {FILE: str(named), FOLDER: str(tmp_path)}
    assert f"[{named}; no token]" in repr(google_authorizer(both, LOCAL))
    assert f"[{gclouds}; no token]" in repr(google_authorizer({FOLDER: str(tmp_path)}, LOCAL))


def test_without_a_file_the_machine_itself_is_asked_but_only_for_google(tmp_path: Path) -> None:
    none = {FOLDER: str(tmp_path)}
    assert google_authorizer(none, LOCAL) is NO_CREDENTIALS
    assert "the metadata server metadata.google.internal" in repr(google_authorizer(none, GOOGLE))


BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ([1], "it is no JSON object"),
    "no type": ({}, "its type is 'None'"),
    "another type": ({"type": "something"}, "its type is 'something'"),
    "no address": ({key: value for key, value in service_account("x").items() if key != "token_uri"}, "token_uri"),
    "a broken key": (service_account("x", private_key=PEM[:200]), "can't be used"),
    "a key of another type": (service_account("x", private_key=7), "can't be used"),
    "no refresh token": ({"type": "authorized_user", "client_id": "x", "client_secret": "y"}, "refresh_token"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_can_not_be_used_is_told_in_one_line_before_anything_is_sent(name: str, tmp_path: Path) -> None:
    info, said = BROKEN[name]
    path = written(tmp_path, info)
    with pytest.raises(CredentialsError) as raised:
        google_authorizer({FILE: str(path)}, LOCAL)
    told = str(raised.value)
    assert str(path) in told and said in told and "gcloud auth" in told and "\n" not in told
    assert not any(line in told for line in PEM.splitlines())


def test_a_file_that_is_missing_or_no_json_is_told_too(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"it can't be read \(No such file"):
        google_authorizer({FILE: str(tmp_path / "none.json")}, LOCAL)
    (tmp_path / "text.json").write_text("-----BEGIN PRIVATE KEY-----")
    with pytest.raises(CredentialsError, match="it is no JSON") as raised:
        google_authorizer({FILE: str(tmp_path / "text.json")}, LOCAL)
    assert "BEGIN" not in str(raised.value)


def test_a_project_is_needed_and_comes_from_the_credentials_where_no_other_is_set(tmp_path: Path) -> None:
    nowhere = structs.replace(LOCAL, project=None)
    with pytest.raises(CredentialsError, match=r"set GOOGLE_CLOUD_PROJECT, or give it under \[providers.vertex\]"):
        google_authorizer({FOLDER: str(tmp_path)}, nowhere)
    of = {FILE: str(written(tmp_path, service_account("x")))}
    assert located(of, nowhere).project == "some-project"
    assert located(of, structs.replace(LOCAL, project="mine")).project == "mine"
    of = {FILE: str(written(tmp_path, authorized_user("x")))}
    assert located(of, nowhere).project == "persons-project"
    assert located({FILE: str(tmp_path / "none")}, nowhere).project is None
    assert located({FOLDER: str(tmp_path / "none")}, nowhere).project is None


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_each_region_has_its_host(region: str, host: str, tmp_path: Path) -> None:
    filled = f"https://{region}-aiplatform.googleapis.com"
    target = structs.replace(GOOGLE, base_url=filled, identity=filled, region=region)
    moved = located({FOLDER: str(tmp_path)}, target)
    assert moved.base_url == moved.identity == f"https://{host}"
    own = structs.replace(target, base_url="http://127.0.0.1:8/v1", identity="mine")
    assert located({FOLDER: str(tmp_path)}, own) == own


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
from millstream.providers.google_tokens import CredentialsFile, MetadataServer, NoToken
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
