"""Vertex AI: which protocol a model has, its address by project and location, and errors as Google tells them."""

from __future__ import annotations

from typing import Any

import pytest
from gemini_shapes import error, quota, reason, retry_in

from millstream.engine.call import Call
from millstream.engine.endpoint import Fault, Request, Response
from millstream.engine.key import key_of
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import azure
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.protocol import Target
from millstream.providers.llm.vertex import GEMINI, OPEN, protocol_of

URL = "https://us-central1-aiplatform.googleapis.com"
LLAMA = "vertex/meta/llama-3.3-70b-instruct-maas"


def encoded(call: Call, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    facts = {"base_url": URL, "identity": URL, "project": "some-project", "region": "us-central1", **known}
    return protocol_of(model).encode(call, Target(model=model, provider=provider, **facts))


@pytest.mark.parametrize(
    ("model", "protocol"),
    [
        ("gemini-2.5-flash", GEMINI),
        ("google/gemini-2.5-flash", GEMINI),
        ("gemma-3-27b-it", GEMINI),
        ("meta/llama-3.3-70b-instruct-maas", OPEN),
        ("deepseek-ai/deepseek-r1-0528-maas", OPEN),
        ("openai/gpt-oss-120b-maas", OPEN),
    ],
)
def test_the_name_of_the_model_decides_the_protocol(model: str, protocol: object) -> None:
    assert protocol_of(model) is protocol


@pytest.mark.parametrize("model", ["vertex/gemini-2.5-flash", LLAMA])
def test_a_project_changes_no_key_and_a_location_does(model: str) -> None:
    def key(**known: Any) -> bytes:
        return key_of(encoded(Call(model, "x"), **known), 0)

    assert key() == key(project="another") == key(project=None)
    assert key() != key(region="europe-west1")
    assert "some-project" not in encoded(Call(model, "x")).identity


@pytest.mark.parametrize("model", ["vertex/gemini-2.5-flash", LLAMA])
def test_a_version_may_be_configured_or_stand_in_the_address(model: str) -> None:
    assert "/v7/projects/some-project/" in encoded(Call(model, "x"), version="v7").url
    url = encoded(Call(model, "x"), base_url="http://127.0.0.1:8/v1").url
    assert url.startswith("http://127.0.0.1:8/v1/projects/some-project/")


def test_odd_names_stay_in_their_place() -> None:
    url = encoded(Call("vertex/gemini-2.5-flash@001", "x"), project="example.com:old/../x", region="a/b").url
    assert "/projects/example.com:old%2F..%2Fx/locations/a%2Fb/publishers/google/models/gemini-2.5-flash@001:" in url
    assert encoded(Call("vertex/gemini-2.5-flash", "x"), region=None).url.count("/locations/global/") == 1


# kind, action, seconds to wait, whether the rate is cut
ERRORS: dict[str, tuple[int, bytes, tuple[str, str, float | None, bool]]] = {
    "a shared quota that is full": (
        429,
        error(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later."),
        ("rate_limited", "throttle", None, True),
    ),
    "a minute's quota": (
        429,
        error(429, "RESOURCE_EXHAUSTED", "No.", quota("RequestsPerMinute"), retry_in("7s")),
        ("rate_limited", "throttle", 7.0, False),
    ),
    "a day's quota": (
        429,
        error(429, "RESOURCE_EXHAUSTED", "No.", quota("RequestsPerDay"), retry_in("7s")),
        ("rate_limited", "stop", None, False),
    ),
    "no billing": (
        403,
        error(403, "PERMISSION_DENIED", "No.", reason("BILLING_DISABLED")),
        ("rate_limited", "stop", None, False),
    ),
}


@pytest.mark.parametrize("protocol", [GEMINI, OPEN], ids=["gemini", "llama"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_what_the_table_says_for_gemini_and_for_llama(name: str, stream: bool, protocol: Any) -> None:
    status, body, row = ERRORS[name]
    for told in (body, b"[" + body + b"]"):
        fault = protocol.decode(Response(status, told, stream=stream))
        assert isinstance(fault, Fault)
        assert (fault.kind, fault.action, fault.retry_after_s, fault.cuts_rate) == row
        assert fault.is_billed_maybe == (status in (502, 504))


def test_the_answers_of_gemini_and_azure_are_read_by_the_decoders_of_google_and_openai() -> None:
    assert GEMINI.decode is gemini.decode
    assert azure.PROTOCOL.decode is openai_chat.decode
