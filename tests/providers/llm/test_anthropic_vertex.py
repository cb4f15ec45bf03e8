"""Claude on Vertex AI: the model in the address, the version in the body, errors of Anthropic's and of Google's."""

from __future__ import annotations

from typing import Any

import gemini_shapes
import orjson
import pytest
from anthropic_shapes import START, failed, text

from millstream.engine.call import Call
from millstream.engine.endpoint import EncodeError, Fault, Request, Response
from millstream.engine.key import key_of
from millstream.providers.llm.protocol import Target
from millstream.providers.llm.vertex import CLAUDE, decode_claude, protocol_of

URL = "https://us-east5-aiplatform.googleapis.com"
MODEL = "vertex/claude-sonnet-4-5@20250929"


def encoded(call: Call, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    facts = {"base_url": URL, "identity": URL, "project": "some-project", "region": "us-east5", **known}
    return CLAUDE.encode(call, Target(model=model, provider=provider, **facts))


@pytest.mark.parametrize(
    ("model", "claude"),
    [
        ("claude-sonnet-4-5@20250929", True),
        ("anthropic/claude-opus-5-5", True),
        ("gemini-2.5-flash", False),
        ("meta/llama-3.3-70b-instruct-maas", False),
    ],
)
def test_claude_is_known_by_its_name_or_its_publishers(model: str, claude: bool) -> None:
    assert (protocol_of(model) is CLAUDE) == claude


def test_a_project_changes_no_key_and_a_location_a_model_and_a_version_do() -> None:
    def key(model: str = MODEL, **known: Any) -> bytes:
        return key_of(encoded(Call(model, "x", max_tokens=9), **known), 0)

    assert key() == key(project="another") == key(project=None) == key("vertex/anthropic/claude-sonnet-4-5@20250929")
    others = {key(region="global"), key("vertex/claude-opus-5-5"), key(version="vertex-2023-10-16"), key()}
    assert len(others) == 4
    assert "some-project" not in encoded(Call(MODEL, "x")).identity


def test_a_version_is_anthropics_or_that_of_the_paths() -> None:
    older = encoded(Call(MODEL, "x", temperature=0), version="vertex-2023-10-16")
    assert older.url.startswith(f"{URL}/v1/projects/")
    sent = orjson.loads(older.body)
    assert (sent["anthropic_version"], sent["temperature"]) == ("vertex-2023-10-16", 0.0)
    newer = encoded(Call(MODEL, "x"), version="v1beta1")
    assert newer.url.startswith(f"{URL}/v1beta1/projects/")
    assert orjson.loads(newer.body)["anthropic_version"] == "2026-10-21"
    assert encoded(Call(MODEL, "x"), base_url="http://h/v1").url.startswith("http://h/v1/projects/")


def test_the_callers_own_version_goes_before_ours() -> None:
    own = {"anthropic_version": "2027-01-01"}
    assert orjson.loads(encoded(Call(MODEL, "x", extra=own)).body)["anthropic_version"] == "2027-01-01"


def test_the_error_for_sampling_names_the_older_version_as_vertex_calls_it() -> None:
    with pytest.raises(EncodeError) as refused:
        encoded(Call(MODEL, "x", temperature=1))
    assert 'set version = "vertex-2023-10-16" under [providers.vertex] in a --config file' in str(refused.value)


def test_odd_names_stay_in_their_place() -> None:
    url = encoded(Call("vertex/claude/../x:y", "x"), region="a/b").url
    assert url.endswith("/locations/a%2Fb/publishers/anthropic/models/claude%2F..%2Fx%3Ay:rawPredict")


# status, body, then kind, action, seconds to wait
ERRORS: dict[str, tuple[int, bytes, tuple[str, str, float | None]]] = {
    "google's quota": (
        429,
        gemini_shapes.error(429, "RESOURCE_EXHAUSTED", "Quota exceeded for online_prediction_requests_per_base_model"),
        ("rate_limited", "throttle", None),
    ),
    "google's quota with a wait": (
        429,
        gemini_shapes.error(429, "RESOURCE_EXHAUSTED", "No.", gemini_shapes.retry_in("26s")),
        ("rate_limited", "throttle", 26.0),
    ),
    "google's billing": (
        403,
        gemini_shapes.error(403, "PERMISSION_DENIED", "No.", gemini_shapes.reason("BILLING_DISABLED")),
        ("rate_limited", "stop", None),
    ),
    "anthropic's bad request": (
        400,
        b'{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one"}}',
        ("rejected", "never", None),
    ),
    "anthropic's overload": (
        529,
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        ("server_error", "retry", None),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_google_and_of_anthropic_are_both_read(name: str) -> None:
    status, body, (kind, action, wait) = ERRORS[name]
    fault = decode_claude(Response(status, body))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.action, fault.retry_after_s) == (kind, action, wait)


def test_errors_of_google_and_of_anthropic_are_both_read_in_a_stream() -> None:
    said = gemini_shapes.error(429, "RESOURCE_EXHAUSTED", "No.", gemini_shapes.retry_in("26s"))
    google = b"data: %b\n\n" % orjson.dumps(orjson.loads(said))
    rows = ((google, "rate_limited", "throttle", 26.0), (failed("overloaded_error"), "server_error", "retry", None))
    for event, kind, action, wait in rows:
        fault = decode_claude(Response(200, START + text("ha") + event, stream=True))
        assert isinstance(fault, Fault)
        assert (fault.kind, fault.action, fault.retry_after_s) == (kind, action, wait)
