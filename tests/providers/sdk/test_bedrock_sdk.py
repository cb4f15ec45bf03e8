"""AWS's own client (botocore) against ours: what each sends to a recording server, and what each reads from it.

Where they differ on purpose: the order of the body's fields (ours is the alphabet's, since the body is the key), and
Accept, User-Agent and the Amz-Sdk headers, which say who asks. The signatures are of different moments: ours is held
against theirs by signing their very request again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import bedrock_shapes as shapes
import pytest
from endpoints import ask, fault_in, transport
from recorder import JSON, Recorder, Sent, recording

from millstream import Call, Engine, Message, Reply, Settings
from millstream.engine.endpoint import Fault, Request
from millstream.providers.credentials.aws import located
from millstream.providers.credentials.aws_signature import Keys, Signer
from millstream.providers.llm.protocol import Target
from millstream.wiring import access_to, endpoint_to

pytest.importorskip("botocore", "1.43", "an older botocore does not know Bedrock")
session: Any = pytest.importorskip("botocore.session")
EventStreamError: Any = pytest.importorskip("botocore.exceptions").EventStreamError
ChecksumMismatch: Any = pytest.importorskip("botocore.eventstream").ChecksumMismatch
# One for all clients: it keeps what it has read of the services.
SESSION = session.Session()
SESSION.set_default_client_config(pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1}))

REGION = "eu-central-1"
KEYS = Keys("AKIATESTKEY123456789", "secret/0123456789+abcdefghijklmnopqrstuvwx", "session+token/0123456789==")
FIXED = Keys(KEYS.access, KEYS.secret)
NAME = "anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.amazon.nova-2-lite-v1:0"
EVENTS = "application/vnd.amazon.eventstream"
SCHEMA = {"title": "Stance", "type": "object", "properties": {"why": {"type": "string"}, "letter": {}}}
TALK = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "And now?"))
TALKED = [{"role": one.role, "content": [{"text": one.content}]} for one in TALK[1:]]
PROMPTED = [{"role": "user", "content": [{"text": "Say A or B."}]}]
TOLD = {"accept", "user-agent", "content-length", "accept-encoding", "connection"}


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def settings_for(server: Recorder, folder: Any, keys: Keys = KEYS) -> Settings:
    """An empty cache, and no profile of this machine's."""
    variables = {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.origin,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": keys.access,
        "AWS_SECRET_ACCESS_KEY": keys.secret,
        "AWS_SESSION_TOKEN": keys.token or "",
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "nothing"),
        "AWS_CONFIG_FILE": str(folder / "nothing"),
    }
    return Settings(cache=folder / "cache", environment=variables)


def our_reply(server: Recorder, call: Call, folder: Any, keys: Keys = KEYS) -> Reply:
    """One call through a whole engine."""

    async def once() -> Reply:
        async with Engine(settings=settings_for(server, folder, keys)) as engine:
            outcome = await engine.ask(call)
        assert outcome.reply is not None, outcome.failure
        return outcome.reply

    return asyncio.run(once())


def our_fault(server: Recorder, folder: Any, *, stream: bool = False) -> Fault:
    """What comes of one attempt."""

    async def once() -> Fault:
        async with transport() as over:
            access = access_to(f"bedrock/{NAME}", settings_for(server, folder))
            return fault_in(await ask(endpoint_to(access, over, 10.0), stream=stream))

    return asyncio.run(once())


def client_of(server: Recorder, keys: Keys = KEYS) -> Any:
    given = {"aws_access_key_id": keys.access, "aws_secret_access_key": keys.secret, "aws_session_token": keys.token}
    return SESSION.create_client("bedrock-runtime", region_name=REGION, endpoint_url=server.origin, **given)


@pytest.fixture
def client(server: Recorder) -> Iterator[Any]:
    opened = client_of(server)
    yield opened
    opened.close()


def resigned(sent: Sent, server: Recorder, keys: Keys) -> str:
    """The Authorization that we would have given to what was sent, at its own moment."""
    at = datetime.strptime(sent.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    request = Request(server.origin + sent.path, "", b"", sent.body, b"", b"")
    told = {"Content-Type": sent.headers["content-type"]}
    return Signer(keys, REGION, "bedrock").signed(request, told, at)["Authorization"]


def assert_the_same(server: Recorder, keys: Keys = KEYS) -> None:
    """Two requests: ours and theirs."""
    ours, theirs = server.sent
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    assert ours.json == theirs.json
    told = []
    for sent in (ours, theirs):
        assert sent.headers["authorization"] == resigned(sent, server, keys)
        kept = {name: value for name, value in sent.headers.items() if name not in TOLD}
        kept["authorization"] = kept["authorization"].partition("/20")[0]
        kept["signed"] = sent.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        kept["x-amz-date"] = kept["x-amz-date"][:2]
        told.append({name: value for name, value in kept.items() if not name.startswith("amz-sdk-")})
    assert told[0] == told[1]


ASKED: dict[str, tuple[Call, dict[str, Any]]] = {
    "a prompt alone": (Call(f"bedrock/{NAME}", "Say A or B."), {"messages": PROMPTED}),
    "an inference profile": (Call(f"bedrock/{ARN}", "Say A or B."), {"messages": PROMPTED}),
    "a conversation with everything set": (
        Call(
            f"bedrock/{NAME}",
            TALK,
            temperature=0.5,
            max_tokens=100,
            top_p=0.9,
            stop=("\n", "END"),
            extra={"top_k": 5, "guardrailConfig": {"guardrailIdentifier": "g1", "guardrailVersion": "1"}},
        ),
        {
            "system": [{"text": "Be brief."}],
            "messages": TALKED,
            "inferenceConfig": {"temperature": 0.5, "maxTokens": 100, "topP": 0.9, "stopSequences": ["\n", "END"]},
            "additionalModelRequestFields": {"top_k": 5},
            "guardrailConfig": {"guardrailIdentifier": "g1", "guardrailVersion": "1"},
        },
    ),
    "a schema and an effort": (
        Call(f"bedrock/{NAME}", "Say A or B.", json_schema=SCHEMA, reasoning_effort="low"),
        {
            "messages": PROMPTED,
            "outputConfig": {
                "effort": "low",
                "textFormat": {
                    "type": "json_schema",
                    "structure": {
                        "jsonSchema": {
                            "name": "Stance",
                            "schema": '{"title":"Stance","type":"object",'
                            '"properties":{"why":{"type":"string"},"letter":{}}}',
                        }
                    },
                },
            },
        },
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_converse_is_asked_and_signed_as_the_sdk_does(server: Recorder, client: Any, name: str, tmp_path: Any) -> None:
    call, parameters = ASKED[name]
    server.answer = shapes.whole()
    our_reply(server, call, tmp_path)
    client.converse(modelId=call.model.partition("/")[2], **parameters)
    assert_the_same(server)


@pytest.mark.parametrize("name", [NAME, ARN])
def test_a_stream_is_asked_for_and_signed_as_the_sdk_does(
    server: Recorder, client: Any, name: str, tmp_path: Any
) -> None:
    server.answer, server.content_type = b"".join(shapes.STREAM), EVENTS
    our_reply(server, Call(f"bedrock/{name}", "Say A or B.", stream=True), tmp_path)
    list(client.converse_stream(modelId=name, messages=PROMPTED)["stream"])
    assert server.last.path.endswith("/converse-stream")
    assert_the_same(server)


def test_keys_without_a_token_are_signed_for_as_the_sdk_does(server: Recorder, tmp_path: Any) -> None:
    server.answer = shapes.whole()
    our_reply(server, Call(f"bedrock/{NAME}", "Say A or B."), tmp_path, FIXED)
    theirs = client_of(server, FIXED)
    theirs.converse(modelId=NAME, messages=PROMPTED)
    theirs.close()
    assert "x-amz-security-token" not in server.last.headers
    assert_the_same(server, FIXED)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1"])
def test_a_region_is_asked_where_the_sdk_asks_it(region: str) -> None:
    host = "https://bedrock-runtime.amazonaws.com"
    theirs = SESSION.create_client(
        "bedrock-runtime", region_name=region, aws_access_key_id="a", aws_secret_access_key="b"
    )
    assert located({}, Target(host, host, "m", region=region)).base_url == theirs.meta.endpoint_url
    theirs.close()


# --- what is read ---

ANSWERS = {
    "usual": shapes.whole(),
    "thought aloud, and from a cache": shapes.whole(shapes.THOUGHT, {"text": "A"}, {"text": "!"}, usage=shapes.CACHED),
    "cut": shapes.whole({"text": "hal"}, stop="max_tokens"),
    "stopped by a guardrail": shapes.whole({"text": "No."}, stop="guardrail_intervened"),
    "cited": shapes.whole(shapes.CITED),
}
STREAMS = {
    "usual": shapes.STREAM,
    "cut": (shapes.START, shapes.delta("hal"), shapes.event("messageStop", {"stopReason": "max_tokens"})),
    "from a cache": (*shapes.STREAM[:-1], shapes.event("metadata", {"usage": shapes.CACHED, "metrics": {}})),
}
FINISHES = {"end_turn": "stop", "max_tokens": "length", "guardrail_intervened": "content_filter"}


def assert_read_alike(ours: Reply, text: str, stop: str, usage: dict[str, int] | None) -> None:
    assert (ours.text, ours.finish_reason) == (text, FINISHES[stop])
    assert ours.refused == (stop == "guardrail_intervened")
    if usage is None:
        assert ours.usage is None
        return
    assert ours.usage is not None
    cached = usage.get("cacheReadInputTokens", 0)
    assert ours.usage.cached_input == cached
    assert ours.usage.input == usage["inputTokens"] + cached + usage.get("cacheWriteInputTokens", 0)
    assert ours.usage.tokens == usage["totalTokens"]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_as_the_sdk_reads_it(server: Recorder, client: Any, name: str, tmp_path: Any) -> None:
    server.answer, server.content_type = ANSWERS[name], JSON
    ours = our_reply(server, Call(f"bedrock/{NAME}", "x"), tmp_path)
    theirs = client.converse(modelId=NAME, messages=PROMPTED)
    blocks = theirs["output"]["message"]["content"]
    parts = [part for block in blocks for part in block.get("citationsContent", {}).get("content", [block])]
    assert_read_alike(ours, "".join(part.get("text", "") for part in parts), theirs["stopReason"], theirs["usage"])
    cited = [one for block in blocks for one in block.get("citationsContent", {}).get("citations", [])]
    urls = [one["location"]["web"]["url"] for one in cited if "web" in one["location"]]
    assert [one.url for one in ours.citations] == list(dict.fromkeys(urls))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_as_the_sdk_reads_it(server: Recorder, client: Any, name: str, tmp_path: Any) -> None:
    server.answer, server.content_type = b"".join(STREAMS[name]), EVENTS
    ours = our_reply(server, Call(f"bedrock/{NAME}", "x", stream=True), tmp_path)
    theirs = list(client.converse_stream(modelId=NAME, messages=PROMPTED)["stream"])
    deltas = [one["contentBlockDelta"]["delta"] for one in theirs if "contentBlockDelta" in one]
    (stop,) = [one["messageStop"]["stopReason"] for one in theirs if "messageStop" in one]
    usages = [one["metadata"]["usage"] for one in theirs if "metadata" in one]
    assert_read_alike(ours, "".join(one.get("text", "") for one in deltas), stop, usages[0] if usages else None)


ERRORS = {
    "AccessDeniedException": 403,
    "InternalServerException": 500,
    "ModelErrorException": 424,
    "ModelNotReadyException": 429,
    "ModelTimeoutException": 408,
    "ResourceNotFoundException": 404,
    "ServiceQuotaExceededException": 400,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "ValidationException": 400,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_the_name_that_the_sdk_has_for_it(
    server: Recorder, client: Any, name: str, stream: bool, tmp_path: Any
) -> None:
    server.answer, server.status = shapes.error("Not so."), ERRORS[name]
    server.headers = {"x-amzn-ErrorType": shapes.named(name)["x-amzn-errortype"]}
    ask_theirs = client.converse_stream if stream else client.converse
    with pytest.raises(getattr(client.exceptions, name)) as raised:
        ask_theirs(modelId=NAME, messages=PROMPTED)
    told = raised.value.response["Error"]
    assert told == {"Code": name, "Message": "Not so."}
    assert f"{told['Code']}: {told['Message']}" in our_fault(server, tmp_path, stream=stream).detail


@pytest.mark.parametrize(
    "name", ["internalServerException", "modelStreamErrorException", "throttlingException", "validationException"]
)
def test_an_exception_within_a_stream_ends_it_for_both(server: Recorder, client: Any, name: str, tmp_path: Any) -> None:
    server.answer, server.content_type = b"".join(shapes.STREAM[:6]) + shapes.exception(name, "Not so."), EVENTS
    with pytest.raises(EventStreamError) as raised:
        list(client.converse_stream(modelId=NAME, messages=PROMPTED)["stream"])
    told = raised.value.response["Error"]
    assert told == {"Code": name, "Message": "Not so."}
    assert f"{name[0].upper()}{name[1:]}: Not so." in our_fault(server, tmp_path, stream=True).detail


def test_a_damaged_stream_is_none_for_both(server: Recorder, client: Any, tmp_path: Any) -> None:
    whole = b"".join(shapes.STREAM)
    server.content_type = EVENTS
    for place in (9, len(shapes.START) + 40, len(whole) - 30):
        server.answer = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        with pytest.raises(ChecksumMismatch):
            list(client.converse_stream(modelId=NAME, messages=PROMPTED)["stream"])
        assert our_fault(server, tmp_path, stream=True).kind == "bad_json"
