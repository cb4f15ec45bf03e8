"""The table of providers: every row leads somewhere, speaks something, and says things in its own words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import structs

import millstream as ms
from millstream.engine.call import Call
from millstream.engine.endpoint import EncodeError
from millstream.providers.kinds import KINDS, Credentials
from millstream.providers.llm.protocol import Target
from millstream.providers.table import OPENAI_NAMES, PROVIDERS, Provider, row_of_kind
from millstream.providers.transport.transport import Transport
from millstream.wiring import Access, Settings, access_to, endpoint_to, keyless_endpoint_to

SCHEMA = {"type": "object"}
EVERYTHING: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 9,
    "top_p": 0.9,
    "stop": ("a",),
    "seed": 7,
    "reasoning_effort": "low",
    "json_schema": SCHEMA,
    "logprobs": 2,
}
USUAL: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 9,
    "top_p": 0.9,
    "stop": ["a"],
    "seed": 7,
    "reasoning_effort": "low",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    },
    "logprobs": True,
    "top_logprobs": 2,
}
# What each row over OpenAI's protocol says otherwise: the parameters that it has no use for, and their other names.
OTHERWISE: dict[str, tuple[set[str], dict[str, Any]]] = {
    "openai": ({"max_tokens"}, {"max_completion_tokens": 9}),
    "azure": ({"max_tokens"}, {"max_completion_tokens": 9}),
    "groq": ({"logprobs", "top_logprobs"}, {}),
    "together": ({"logprobs", "top_logprobs"}, {"logprobs": 2}),
    "openrouter": ({"reasoning_effort"}, {"reasoning": {"effort": "low"}}),
    "deepseek": ({"seed"}, {}),
    "mistral": ({"seed", "logprobs", "top_logprobs"}, {"random_seed": 7}),
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "openai-completions": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "xai": "XAI_API_KEY",
    "groq": "GROQ_API_KEY",
    "together": "TOGETHER_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
}
LOCAL = {
    "vllm": "VLLM_API_KEY",
    "vllm-completions": "VLLM_API_KEY",
    "llamacpp": "LLAMA_API_KEY",
    "ollama": None,
    "sim": None,
}
OVER_OPENAI = [name for name, row in PROVIDERS.items() if row.kind in ("openai", "azure")]
ENVIRONMENT = {variable: f"key-of-{name}-0123456789" for name, variable in KEYS.items()}
ENVIRONMENT |= {"AZURE_OPENAI_ENDPOINT": "https://mine.example"}


def access(name: str, **changes: Any) -> Access:
    return access_to(f"{name}/m", Settings(**{"environment": ENVIRONMENT, **changes}))


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_row_speaks_a_kind_that_there_is(name: str) -> None:
    row = PROVIDERS[name]
    assert keyless_endpoint_to(Access(Target("http://h", "h", "m"), row.kind, Credentials())).base_url == "http://h"
    assert not row.base_url.endswith("/")
    assert row.base_url.startswith(("https://", "http://127.0.0.1:")) or row.url_variable is not None


@pytest.mark.parametrize("name", OVER_OPENAI)
def test_every_row_over_openais_protocol_says_what_was_set_in_its_own_words(name: str) -> None:
    endpoint = keyless_endpoint_to(access(name))
    refused = PROVIDERS[name].refuses
    asked = {key: value for key, value in EVERYTHING.items() if key not in refused}
    body = orjson.loads(endpoint.encode(Call(f"{name}/m", "x", **asked)).body)
    missing, instead = OTHERWISE.get(name, (set(), {}))
    expected = {key: value for key, value in USUAL.items() if key not in missing}
    assert body == {**expected, **instead, "model": "m", "messages": [{"content": "x", "role": "user"}]}
    for parameter in refused & EVERYTHING.keys():
        with pytest.raises(EncodeError, match=f"{name}/m is known to take no {parameter}"):
            endpoint.encode(Call(f"{name}/m", "x", **{parameter: EVERYTHING[parameter]}))


@pytest.mark.parametrize("name", OVER_OPENAI)
def test_usage_is_asked_for_in_streams_wherever_it_may_be(name: str) -> None:
    wire = orjson.loads(keyless_endpoint_to(access(name)).encode(Call(f"{name}/m", "x", stream=True)).wire)
    assert wire["stream"] is True
    assert ("stream_options" in wire) == (name != "mistral")


def test_the_chosen_tokens_alone_are_asked_for_as_each_wants_it() -> None:
    def asked(name: str) -> dict[str, Any]:
        body = orjson.loads(keyless_endpoint_to(access(name)).encode(Call(f"{name}/m", "x", logprobs=0)).body)
        return {key: value for key, value in body.items() if "logprobs" in key}

    assert asked("fireworks") == {"logprobs": True}
    assert asked("together") == {"logprobs": 1}


@pytest.mark.parametrize("name", KEYS)
def test_a_provider_needs_the_key_that_people_have_for_it(name: str) -> None:
    assert access(name).credentials.key == ENVIRONMENT[KEYS[name]]
    without = {"AZURE_OPENAI_ENDPOINT": "https://mine.example"}
    with pytest.raises(ms.ConfigurationError, match=f"'{name}/m' needs a key: set {KEYS[name]}"):
        access(name, environment=without)


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_server_needs_no_key_and_gets_the_one_that_there_is(name: str) -> None:
    assert access(name, environment={}).credentials.key is None
    variable = LOCAL[name]
    if variable is not None:
        assert access(name, environment={variable: "local-key"}).credentials.key == "local-key"


def test_azure_is_asked_at_the_endpoint_that_is_set_and_in_its_version() -> None:
    def url(**environment: str) -> str:
        given = access("azure", environment={**ENVIRONMENT, **environment})
        return keyless_endpoint_to(given).encode(Call("azure/m", "x")).url

    assert url() == "https://mine.example/openai/v1/chat/completions"
    for endpoint in ("https://mine.example/", "https://mine.example/openai", "https://mine.example/openai/v1/"):
        assert url(AZURE_OPENAI_ENDPOINT=endpoint) == "https://mine.example/openai/v1/chat/completions"
    assert url(OPENAI_API_VERSION="v1") == url()
    assert url(OPENAI_API_VERSION="preview") == f"{url()}?api-version=preview"
    old = "https://mine.example/openai/deployments/m/chat/completions?api-version=2024-10-21"
    assert url(OPENAI_API_VERSION="2024-10-21") == url(AZURE_OPENAI_API_VERSION="2024-10-21") == old
    with pytest.raises(ms.ConfigurationError, match="azure has no address: set AZURE_OPENAI_ENDPOINT, or give it with"):
        access("azure", environment={"AZURE_OPENAI_API_KEY": "k"})


def test_azures_versions_have_keys_of_their_own() -> None:
    def identity(version: str | None) -> str:
        row = Provider("https://a", identity="mine", kind="azure", version=version)
        given = access_to("lab/m", Settings(environment={}, providers={"lab": row}))
        return keyless_endpoint_to(given).encode(Call("lab/m", "x")).identity

    assert identity(None) == "mine/openai/v1/chat/completions"
    assert len({identity(version) for version in (None, "preview", "2024-10-21", "2025-01-01-preview")}) == 4


def test_a_token_of_entra_stands_in_for_azures_key() -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": "https://mine.example", "AZURE_OPENAI_AD_TOKEN": "entra-token"}
    found = access("azure", environment=environment)
    assert found.credentials == Credentials(None, {"AZURE_OPENAI_AD_TOKEN": "entra-token"})
    assert "entra-token" not in repr(found) + repr(found.credentials)
    assert found.account != access("azure", environment={**environment, "AZURE_OPENAI_AD_TOKEN": "another"}).account


def authorization(version: str | None, environment: dict[str, str]) -> Any:
    given = {"anthropic": structs.replace(PROVIDERS["anthropic"], version=version)}
    found = access_to("anthropic/m", Settings(environment=environment, providers=given))
    return KINDS["anthropic"].authorizer(found.credentials, found.target).fixed


def test_anthropics_key_stands_where_the_version_of_its_api_has_it() -> None:
    for version in (None, "2026-10-21", "2027-01-01"):
        assert authorization(version, {"ANTHROPIC_API_KEY": "k"}) == {"Authorization": "Bearer k"}
    assert authorization("2023-06-01", {"ANTHROPIC_API_KEY": "k"}) == {"x-api-key": "k"}


@pytest.mark.parametrize("version", [None, "2023-06-01"])
def test_a_gateways_token_stands_in_for_anthropics_key(version: str | None) -> None:
    assert authorization(version, {"ANTHROPIC_AUTH_TOKEN": "t"}) == {"Authorization": "Bearer t"}
    both = {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}
    assert authorization(version, both) == authorization(version, {"ANTHROPIC_API_KEY": "k"})
    with pytest.raises(ms.ConfigurationError, match="'anthropic/m' needs a key: set ANTHROPIC_API_KEY"):
        authorization(version, {})


def test_an_address_is_filled_with_region_and_project() -> None:
    row = Provider("https://{region}.example/{project}", fact_variables={"region": ("REGION", "ZONE")}, project="p")
    given = {"lab": row}

    def base_url(**environment: str) -> str:
        return access_to("lab/m", Settings(environment=environment, providers=given)).target.base_url

    assert base_url(REGION="r1", ZONE="z") == "https://r1.example/p"
    assert base_url(ZONE="z") == "https://z.example/p"
    said = r"lab needs a region: set REGION or ZONE, or give it under \[providers.lab\] in a --config file"
    with pytest.raises(ms.ConfigurationError, match=said):
        base_url()


def test_the_newer_name_for_max_tokens_belongs_to_openais_own_address_alone() -> None:
    assert access("openai").target.names == OPENAI_NAMES
    assert access("openai", base_url="http://127.0.0.1:1/v1").target.names == {}
    assert access("openai", environment={**ENVIRONMENT, "OPENAI_BASE_URL": "http://h/v1"}).target.names == {}
    regional = access("openai", environment={**ENVIRONMENT, "OPENAI_BASE_URL": "https://eu.api.openai.com/v1"})
    assert regional.target.names == OPENAI_NAMES
    assert access("mistral", base_url="http://127.0.0.1:1/v1").target.names == {"seed": "random_seed"}


def test_a_kind_has_a_provider_that_it_was_made_for_but_openais() -> None:
    assert row_of_kind("openai") is None
    assert row_of_kind("openai-completions") is None
    assert row_of_kind("azure") is PROVIDERS["azure"]
    assert row_of_kind("nothing") is None


def test_an_endpoint_tells_where_it_leads_and_no_key() -> None:
    endpoint = endpoint_to(access("openai"), Transport(), 1.0)
    assert repr(endpoint) == "<ModelEndpoint m at https://api.openai.com/v1, openai>"
