"""What is built from what was configured, and that no key shows in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import millstream as ms
from millstream import wiring
from millstream.fixtures.provider import ModelProvider, Options
from millstream.providers.table import Provider

KEY = "sk-canary-0123456789abcdef"


def settings(**changes: object) -> wiring.Settings:
    return wiring.Settings(**{"environment": {"OPENAI_API_KEY": KEY}, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-4o", "openai"),
        ("azure/gpt-4o", "openai"),
        ("groq/llama", "openai"),
        ("mylab/m", "openai"),
        ("openai-responses/gpt-5", "openai-responses"),
        ("anthropic/claude", "anthropic"),
        ("gemini/gemini-2.5-pro", "gemini"),
        ("vertex/gemini-2.5-pro", "gemini"),
        ("vertex/google/gemini-2.5-pro", "gemini"),
        ("vertex/claude-sonnet-4", "anthropic"),
        ("vertex/anthropic/claude-sonnet-4", "anthropic"),
        ("vertex/meta/llama-4", "openai"),
        ("bedrock/anthropic.claude-v2", "bedrock"),
    ],
)
def test_a_model_is_of_the_family_whose_words_it_takes(model: str, family: str) -> None:
    found = settings(environment={}, providers={"mylab": Provider("http://10.0.0.1/v1")})
    assert wiring.family_of(model, found) == ms.Engine(settings=found).family_of(model) == family


def test_a_model_of_nobody_has_no_family() -> None:
    with pytest.raises(ms.ConfigurationError, match=r"no provider 'nobody' .*; known are anthropic"):
        wiring.family_of("nobody/m", settings())


def test_the_key_of_a_call_is_what_its_outcome_has_and_tells_trials_apart(tmp_path: Path) -> None:
    async def main() -> None:
        async with ModelProvider(Options()) as provider:
            async with ms.Engine(settings=settings(base_url=provider.base_url, cache=tmp_path)) as engine:
                keys = [engine.key_of(ms.Call("openai/open", "A or B?", trial=trial)) for trial in (0, 1, 0)]
                assert provider.log.total == 0
                assert keys[0] == keys[2] != keys[1]
                assert (await engine.ask(ms.Call("openai/open", "A or B?", stream=True))).key == keys[0]
                assert engine.key_of(ms.Call("openai/open", "A or B?", temperature=float("inf"))) == ""
            with pytest.raises(RuntimeError, match="use it inside `async with Engine"):
                engine.key_of(ms.Call("openai/open", "A or B?"))

    asyncio.run(main())


def test_a_key_shows_in_no_repr_of_what_holds_it() -> None:
    configured = settings()
    access = wiring.access_to("openai/gpt-4o", configured)
    assert access.credentials.key == KEY
    assert KEY not in repr(configured) + repr(access) + str(configured) + str(access)
    assert KEY not in repr(ms.Engine(settings=configured))


def test_a_missing_key_is_refused_with_the_variable_to_set() -> None:
    with pytest.raises(ms.ConfigurationError, match="'openai/gpt-4o' needs a key: set OPENAI_API_KEY"):
        wiring.access_to("openai/gpt-4o", settings(environment={}))
    with pytest.raises(ms.ConfigurationError, match="set OPENAI_API_KEY"):
        ms.Engine(settings=settings(environment={}, lanes=(ms.Lane("openai/gpt-4o"),)))


def test_a_server_of_ones_own_needs_no_key() -> None:
    access = wiring.access_to("openai/tiny", settings(environment={}, base_url="http://127.0.0.1:1/v1/"))
    assert (access.target.base_url, access.target.model, access.credentials.key) == (
        "http://127.0.0.1:1/v1",
        "tiny",
        None,
    )
    assert access.target.names == {}


def test_an_unknown_provider_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ms.ConfigurationError, match=r"no provider 'opnai' \(nearest: openai\); known are .*openai"):
        wiring.access_to("opnai/gpt-4o", settings())


def test_the_address_comes_from_flag_then_variable_then_table() -> None:
    environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://variable/v1"}
    assert wiring.access_to("openai/m", settings()).target.base_url == "https://api.openai.com/v1"
    assert wiring.access_to("openai/m", settings(environment=environment)).target.base_url == "http://variable/v1"
    flagged = settings(environment=environment, base_url="http://flag/v1")
    assert wiring.access_to("openai/m", flagged).target.base_url == "http://flag/v1"


def test_a_providers_identity_stands_in_keys_for_its_address() -> None:
    rows = {"mylab": Provider("http://10.0.0.1/v1", identity="lab")}
    assert wiring.access_to("mylab/m", settings(providers=rows)).target.identity == "lab"


def test_the_name_of_a_lanes_files_tells_accounts_apart_and_tells_no_key() -> None:
    one = wiring.access_to("openai/m", settings())
    other = wiring.access_to("openai/m", settings(environment={"OPENAI_API_KEY": "sk-other-key-for-tests"}))
    assert wiring.stem_of(one, settings()) != wiring.stem_of(other, settings())
    assert KEY not in str(wiring.stem_of(one, settings()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "fast"}, "mode 'fast' is none of live, record, replay, strict"),
        ({"max_cost": -1.0}, r"max_cost \(-1\) must be dollars, 0 or more"),
        ({"max_cost": float("nan")}, "must be dollars"),
        ({"snapshot": Path("s")}, "a snapshot is read in mode replay or strict; mode record reads none"),
        ({"snapshot": Path("s"), "mode": "live"}, "mode live reads none"),
        ({"max_age_s": -1.0}, r"max_age_s \(-1\) must be seconds"),
    ],
)
def test_senseless_settings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ms.ConfigurationError, match=message):
        settings(**changes)


def test_a_folder_may_be_told_as_a_text() -> None:
    made = settings(cache="a/b", corpus="c")
    assert (made.cache, made.corpus, made.snapshot) == (Path("a/b"), Path("c"), None)
    assert settings(cache="s", snapshot="x", mode="replay").snapshot == Path("x")


@pytest.mark.parametrize(
    "address",
    [
        "http://bob:PassWord-77@127.0.0.1:1/v1",
        "http://[::1/v1",
        "http://h:99999/v1",
        "ftp://h/v1",
        "http://h/v1?x=1",
        "http://",
    ],
)
def test_an_address_in_a_variable_is_held_to_what_the_flag_is_and_not_shown(address: str) -> None:
    with pytest.raises(ms.ConfigurationError, match="OPENAI_BASE_URL must be an address such as") as told:
        wiring.access_to("openai/m", settings(environment={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address}))
    assert "PassWord" not in str(told.value)


@pytest.mark.parametrize("variable", ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"])
def test_a_token_with_a_line_end_is_refused_and_one_of_spaces_is_none(variable: str) -> None:
    with pytest.raises(ms.ConfigurationError, match="characters that no header can carry"):
        wiring.access_to("anthropic/m", settings(environment={variable: "tok-0123456789\r\nX-Injected: yes"}))
    with pytest.raises(ms.ConfigurationError, match="needs a key"):
        wiring.access_to("anthropic/m", settings(environment={variable: "   "}))


@pytest.mark.parametrize(
    ("model", "variable"), [("bedrock/m", "AWS_REGION"), ("vertex/gemini-x", "GOOGLE_CLOUD_LOCATION")]
)
def test_no_region_leads_to_another_host(model: str, variable: str) -> None:
    for region in ("evil.example/x?", "us east", "a@b", "evil.example"):
        environment = {variable: region, "GOOGLE_CLOUD_PROJECT": "p", "AWS_BEARER_TOKEN_BEDROCK": "token-0123456789"}
        with pytest.raises(ms.ConfigurationError, match="must be letters, digits and dashes"):
            wiring.access_to(model, settings(environment=environment))
