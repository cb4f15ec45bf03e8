"""Servers on the gateway's own machine are reached by callers only where somebody set them up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from gateways import gateway, get, post, question

from millstream import Lane, Settings
from millstream.configuration.gateway_settings import GatewaySettings
from millstream.interfaces.gateway.offered_models import unreached
from millstream.providers.table import Provider

LOCAL = {"ollama", "vllm", "vllm-completions", "llamacpp", "sim"}


@pytest.mark.parametrize("model", sorted(f"{name}/x" for name in LOCAL))
def test_a_server_that_nobody_set_up_is_no_provider(tmp_path: Path, model: str) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            refused = await post(both.port, {**question(), "model": model})
            said = refused.json["error"]
            assert (refused.status, said["code"]) == (404, "model_not_found")
            assert "start it by `serve --base-url URL`" in said["message"]
            assert f"give [providers.{model.partition('/')[0]}] a base_url" in said["message"]
            assert (await get(both.port, f"/v1/models/{model}")).status == 404
            listed = (await get(both.port, "/v1/models")).json["data"]
            assert not any(one["id"].partition("/")[0] in LOCAL for one in listed)

    asyncio.run(asyncio.wait_for(scenario(), 30))


ALLOWED: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "its own table": ({"providers": {"vllm": Provider("http://127.0.0.1:1/v1")}}, {}, "vllm"),
    "a lane of one of its models": ({"lanes": (Lane("ollama/x"),)}, {}, "ollama"),
    "its variable": ({"environment": {"OLLAMA_BASE_URL": "http://127.0.0.1:1/v1"}}, {}, "ollama"),
    "a name of the gateway's": ({}, {"mine": "llamacpp/x"}, "llamacpp"),
}


@pytest.mark.parametrize("way", ALLOWED)
def test_what_somebody_set_up_is_reached_and_nothing_else(way: str) -> None:
    given, models, name = ALLOWED[way]
    settings = Settings(**{"environment": {}, **given})
    assert unreached(settings, GatewaySettings(models=models)) == LOCAL - {name}


def test_an_address_for_all_is_one_for_these_too() -> None:
    settings = Settings(environment={}, base_url="http://127.0.0.1:1/v1")
    assert unreached(settings, GatewaySettings()) == frozenset()
