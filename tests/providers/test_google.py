"""Google credentials: found where Google's own tools put them, renewed in time, one exchange however many wait."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from google_server import PEM, authorized_user, service_account, written
from msgspec import structs
from tokens import later, run, token_of

from millstream.engine.endpoint import SendError
from millstream.providers.credentials.authorizer import NO_CREDENTIALS, CredentialsError
from millstream.providers.credentials.google import FILE, FOLDER, SERVER, GoogleAuthorizer, google_authorizer, located
from millstream.providers.credentials.google_tokens import AccessToken, NoToken
from millstream.providers.llm.protocol import Target

GOOGLE = Target("https://aiplatform.googleapis.com", "x", "gemini-2.5-flash", "vertex", project="p", region="global")
LOCAL = structs.replace(GOOGLE, base_url="http://127.0.0.1:1")


async def renewed(authorizer: GoogleAuthorizer, last: str) -> None:
    for _ in range(10_000):
        if await token_of(authorizer) != last:
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"{last} is still in use")


class Scripted:
    """A source whose tokens are told apart by their number; `failing` is what it raises instead."""

    name = "a script"
    secrets = ("a-secret-that-never-changes",)

    def __init__(self, lasts_s: float = 3600.0) -> None:
        self.lasts_s = lasts_s
        self.asked = self.fetched = 0
        self.failing: NoToken | None = None
        self.threads: set[int] = set()
        self.may_go = threading.Event()
        self.may_go.set()

    def fetch(self) -> AccessToken:
        self.may_go.wait(10)
        self.asked += 1
        self.threads.add(threading.get_ident())
        if self.failing is not None:
            raise self.failing
        self.fetched += 1
        secret = f"token-{self.fetched}"
        return AccessToken(secret, {"authorization": f"Bearer {secret}"}, self.lasts_s)


def test_a_token_is_fetched_in_another_thread() -> None:
    source = Scripted()
    run(token_of(GoogleAuthorizer(source)))
    assert threading.get_ident() not in source.threads and len(source.threads) == 1


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
        assert source.asked == 2
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
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = f"127.0.0.1:{listening.getsockname()[1]}"
        assert f"the metadata server {server};" in repr(google_authorizer({**none, SERVER: server}, GOOGLE))


@pytest.mark.parametrize("server", ["127.0.0.1:1", "127.0.0.1:port"])
def test_without_a_file_and_without_such_a_machine_nothing_is_sent(server: str, tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"no Google credentials found, .* is not there: log in with `gcloud"):
        google_authorizer({FOLDER: str(tmp_path), SERVER: server}, GOOGLE)


BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ([1], "it is no JSON object"),
    "no type": ({}, "its type is 'None'"),
    "another type": ({"type": "something"}, "its type is 'something'"),
    "no address": ({key: value for key, value in service_account("x").items() if key != "token_uri"}, "token_uri"),
    "a broken key": (service_account("x", private_key=PEM[:200]), "See https://cryptography.io/"),
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
