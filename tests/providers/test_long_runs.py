"""What becomes of credentials in a run that outlives them: renewed where they can be, else told by their variable."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from google_server import TokenServer, service_account, written
from raw_server import RawServer, Visit, http

from millstream import Call, Engine, Settings, Stopped
from millstream.engine.call import Outcome
from millstream.engine.endpoint import Request
from millstream.providers.credentials.authorizer import Authorizer
from millstream.providers.credentials.aws import AwsAuthorizer, aws_authorizer
from millstream.providers.llm.protocol import Target

TARGET = Target("https://bedrock-runtime.eu-west-1.amazonaws.com", "x", "m", "bedrock", region="eu-west-1")
REQUEST = Request("https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse", "", b"", b"", b"", b"")
ANSWER = b'{"output":{"message":{"content":[{"text":"A"}]}},"stopReason":"end_turn"}'
EXPIRED = b'{"message":"The security token included in the request is expired"}'


def put(folder: Path, token: str, access: str = "AKIACANARYKEY1234567") -> None:
    """A profile as a tool renews it: written beside and moved into its place."""
    fresh = folder / "credentials.new"
    ends = f"aws_session_token={token}\n" if token else ""
    fresh.write_text(f"[default]\naws_access_key_id={access}\naws_secret_access_key=a-secret-of-AWS\n{ends}")
    fresh.replace(folder / "credentials")


def variables_in(folder: Path) -> dict[str, str]:
    return {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}


def sent_by(authorizer: Authorizer) -> tuple[str, str | None]:
    """The key and the token that an attempt is signed with now."""
    headers = asyncio.run(_headers(authorizer))
    return headers["Authorization"].partition("Credential=")[2].partition("/")[0], headers.get("X-Amz-Security-Token")


async def _headers(authorizer: Authorizer) -> dict[str, str]:
    return dict(await authorizer.headers(REQUEST))


def test_keys_that_end_are_read_again_where_their_file_has_changed(tmp_path: Path) -> None:
    put(tmp_path, "first-token-0123456789")
    authorizer = aws_authorizer(None, variables_in(tmp_path), TARGET)
    assert isinstance(authorizer, AwsAuthorizer)
    assert sent_by(authorizer) == ("AKIACANARYKEY1234567", "first-token-0123456789")
    before = authorizer.secrets
    put(tmp_path, "second-token-0123456789", "AKIAANOTHERKEY123456")
    assert sent_by(authorizer) == ("AKIAANOTHERKEY123456", "second-token-0123456789")
    # Both are struck out, since answers to the first are still on their way.
    assert set(before) < set(authorizer.secrets) and "second-token-0123456789" in authorizer.secrets
    same = authorizer.secrets
    sent_by(authorizer)
    assert authorizer.secrets is same


@pytest.mark.parametrize("text", ["", "[default]\naws_access_key_id=AKIAHALF\n", "no file of profiles"])
def test_a_file_that_is_half_written_or_gone_changes_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "first-token-0123456789")
    authorizer = aws_authorizer(None, variables_in(tmp_path), TARGET)
    (tmp_path / "credentials").write_text(text)
    assert sent_by(authorizer)[1] == "first-token-0123456789"
    os.unlink(tmp_path / "credentials")
    assert sent_by(authorizer)[1] == "first-token-0123456789"
    put(tmp_path, "second-token-0123456789")
    assert sent_by(authorizer)[1] == "second-token-0123456789"


def test_keys_that_do_not_end_stay_those_that_the_run_began_with(tmp_path: Path) -> None:
    put(tmp_path, "")
    authorizer = aws_authorizer(None, variables_in(tmp_path), TARGET)
    put(tmp_path, "a-token-0123456789abc", "AKIAANOTHERKEY123456")
    assert sent_by(authorizer) == ("AKIACANARYKEY1234567", None)


def test_keys_of_the_environment_are_no_files_to_replace(tmp_path: Path) -> None:
    put(tmp_path, "first-token-0123456789")
    own = {"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    authorizer = aws_authorizer(None, {**variables_in(tmp_path), **own}, TARGET)
    put(tmp_path, "second-token-0123456789")
    assert sent_by(authorizer) == ("AKIAENV", "t")


async def asked(settings: Settings, calls: int, model: str) -> tuple[list[Outcome], str]:
    found: list[Outcome] = []
    async with Engine(settings=settings) as engine:
        try:
            async for outcome in engine.run(Call(model, f"prompt {number}") for number in range(calls)):
                found.append(outcome)
        except Stopped as stopped:
            return found, stopped.stops[0].detail
    return found, ""


def test_a_run_goes_on_with_keys_that_were_renewed_when_the_first_had_ended(tmp_path: Path) -> None:
    put(tmp_path, "first-token-0123456789")
    answered = 0

    async def serve(visit: Visit) -> None:
        nonlocal answered
        while (request := await visit.request()) is not None:
            if b"first-token" in request and answered >= 5:
                put(tmp_path, "second-token-0123456789")
                named = "x-amzn-errortype: ExpiredTokenException"
                await visit.send(http(EXPIRED, named, status="403 Forbidden"))
            else:
                answered += 1
                await visit.send(http(ANSWER))

    async def scenario() -> tuple[list[Outcome], str]:
        async with RawServer(serve) as server:
            environment = {
                **variables_in(tmp_path),
                "AWS_REGION": "eu-west-1",
                "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"http://127.0.0.1:{server.port}",
            }
            return await asked(Settings(cache=tmp_path / "cache", environment=environment), 40, "bedrock/m")

    outcomes, stopped = asyncio.run(scenario())
    assert (stopped, [outcome.status for outcome in outcomes]) == ("", ["ok"] * 40)


@pytest.mark.parametrize(
    ("model", "variable", "environment"),
    [
        ("azure/mine", "AZURE_OPENAI_AD_TOKEN", {"AZURE_OPENAI_ENDPOINT": "{origin}"}),
        ("anthropic/claude-sonnet-4-6", "ANTHROPIC_AUTH_TOKEN", {"ANTHROPIC_BASE_URL": "{origin}"}),
        (
            "bedrock/m",
            "AWS_SESSION_TOKEN",
            {
                "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{origin}",
                "AWS_REGION": "eu-west-1",
                "AWS_ACCESS_KEY_ID": "AKIA",
                "AWS_SECRET_ACCESS_KEY": "s",
            },
        ),
    ],
)
def test_a_token_that_nobody_renews_is_named_where_it_is_refused(
    model: str, variable: str, environment: dict[str, str], tmp_path: Path
) -> None:
    async def refuse(visit: Visit) -> None:
        while await visit.request() is not None:
            await visit.send(http(b'{"error":{"message":"no longer good"}}', status="401 Unauthorized"))

    async def scenario() -> str:
        async with RawServer(refuse) as server:
            given = {
                name: value.format(origin=f"http://127.0.0.1:{server.port}") for name, value in environment.items()
            }
            settings = Settings(cache=tmp_path / "cache", environment={**given, variable: "a-token-0123456789"})
            return (await asked(settings, 5, model))[1]

    said = asyncio.run(scenario())
    assert said == f"{model} refuses the token in {variable}, which may have expired (401: no longer good): correct it"


def test_two_models_with_the_same_credentials_share_one_token(tmp_path: Path) -> None:
    async def echo(visit: Visit) -> None:
        text = b'{"candidates":[{"content":{"parts":[{"text":"A"}]},"finishReason":"STOP"}]}'
        while await visit.request() is not None:
            await visit.send(http(text))

    async def scenario() -> int:
        async with TokenServer() as tokens, RawServer(echo) as server:
            environment = {
                "GOOGLE_APPLICATION_CREDENTIALS": str(written(tmp_path, service_account(tokens.url))),
                "GOOGLE_VERTEX_BASE_URL": f"http://127.0.0.1:{server.port}",
                "GOOGLE_CLOUD_PROJECT": "p",
            }
            async with Engine(settings=Settings(cache=tmp_path / "cache", environment=environment)) as engine:
                names = [f"vertex/gemini-{number}" for number in range(8)]
                outcomes = await asyncio.gather(*(engine.ask(Call(name, "x")) for name in names))
                assert [outcome.status for outcome in outcomes] == ["ok"] * 8
            return tokens.exchanges

    assert asyncio.run(scenario()) == 1
