"""Gemini and Vertex AI through the whole engine, over real sockets: found, asked, kept, stopped, and told to nobody."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import orjson
import pytest
from google_server import CLIENT_SECRET, PEM, REFRESH_TOKEN, TokenServer, refusal, written
from google_server import service_account as info_of
from msgspec import structs
from raw_server import RawServer, Visit, http
from run_sink import RunSink

from millstream import Call, ConfigurationError, Engine, Outcome, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.runs.run_folder import RunFolder
from millstream.wiring import access_to, keyless_endpoint_to

MODEL = "vertex/gemini-2.5-flash"
POLICY = RetryPolicy(attempts_max=3, wait_min_s=0.01, wait_max_s=0.02, patience_s=1.0, probe_every_s=0.05)
CANARIES = (*(line for line in PEM.splitlines() if len(line) > 20 and "-" not in line), REFRESH_TOKEN, CLIENT_SECRET)
CANARIES += ("ya29.canary",)


async def echo(visit: Visit) -> None:
    """A model that says what it was sent, token and all."""
    while (request := await visit.request()) is not None:
        parts = [{"text": request.decode("utf-8", "replace")}]
        body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "modelVersion": "echo"}
        await visit.send(http(orjson.dumps(body)))


def settings_for(folder: Path, **environment: str) -> Settings:
    """`gcloud`'s folder is an empty one, whatever stands in the home of who runs this."""
    variables = {"CLOUDSDK_CONFIG": str(folder / "none"), **environment}
    return Settings(cache=folder / "cache", environment=variables, policy=POLICY)


def row(outcome: Outcome) -> bytes:
    return orjson.dumps({"id": outcome.key, "all": repr(outcome)})


async def run_and_tell(settings: Settings, folder: Path, calls: int) -> tuple[list[Outcome], str]:
    """Some calls, and whatever is said of them."""
    outcomes: list[Outcome] = []
    said: list[str] = []
    with RunFolder(folder / "run", {"model": MODEL}) as run:
        async with Engine(settings=settings) as engine:
            try:
                asked = (Call(MODEL, f"prompt {number}") for number in range(calls))
                outcomes += [one async for one in engine.run(asked, RunSink(run, row))]
            except Stopped as error:
                said += ["".join(traceback.format_exception(error)), repr(error.stops)]
            route = engine.scheduler.routes.of(MODEL)
            said += [repr(engine), repr(engine.scheduler), repr(route), repr(access_to(MODEL, settings))]
    return outcomes, "\n".join([*said, *map(repr, outcomes)])


def assert_nothing_came_to_light(folder: Path, *said: str) -> None:
    written_by_us = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert any(path.name == "data.mdb" for path in written_by_us)
    everything = [*(path.read_bytes() for path in written_by_us), *(text.encode() for text in said)]
    assert [canary for canary in CANARIES for data in everything if canary.encode() in data] == []


def test_a_refused_exchange_stops_the_lane_after_one_probe_and_nothing_is_sent(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], str, int, int]:
        async with TokenServer(answer=refusal()) as tokens, RawServer(echo) as model:
            settings = settings_for(
                tmp_path,
                GOOGLE_APPLICATION_CREDENTIALS=str(written(tmp_path, info_of(tokens.url))),
                GOOGLE_VERTEX_BASE_URL=f"http://127.0.0.1:{model.port}",
            )
            outcomes, said = await run_and_tell(settings, tmp_path, 50)
            return outcomes, said, tokens.exchanges, model.connections

    outcomes, said, exchanges, connections = asyncio.run(scenario())
    assert (outcomes, exchanges, connections) == ([], 2, 0)
    assert "Google refuses the credentials in" in said and "invalid_grant: Invalid JWT Signature." in said
    assert_nothing_came_to_light(tmp_path, said)


def test_a_token_endpoint_that_is_ill_for_a_moment_costs_no_call(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], int]:
        async with TokenServer(answer=http(b"{}", status="503 Busy")) as tokens, RawServer(echo) as model:
            settings = settings_for(
                tmp_path,
                GOOGLE_APPLICATION_CREDENTIALS=str(written(tmp_path, info_of(tokens.url))),
                GOOGLE_VERTEX_BASE_URL=f"http://127.0.0.1:{model.port}",
            )
            async with Engine(settings=settings) as engine:
                asked = asyncio.create_task(engine.ask(Call(MODEL, "x")))
                await asyncio.wait_for(tokens.asked.wait(), 10)
                tokens.answer = None
                return [await asked], tokens.exchanges

    (outcome,), exchanges = asyncio.run(scenario())
    assert outcome.status == "ok" and exchanges == 2 and outcome.attempts == 2 and not outcome.maybe_billed


# --- what is told before anything is sent ---


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/"),
        ({"GOOGLE_CLOUD_LOCATION": "us-east5"}, "https://us-east5-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-east5/"),
        ({"CLOUD_ML_REGION": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/locations/eu/"),
        ({"GOOGLE_VERTEX_BASE_URL": "http://h:8/v1"}, "http://h:8/v1/projects/p/locations/global/"),
    ],
)  # fmt: skip
def test_vertex_is_asked_where_its_location_is(environment: dict[str, str], url: str, tmp_path: Path) -> None:
    access = access_to(MODEL, unsent(tmp_path, GOOGLE_CLOUD_PROJECT="p", **environment))
    request = keyless_endpoint_to(access).encode(Call(MODEL, "x"))
    assert request.url == f"{url}publishers/google/models/gemini-2.5-flash:generateContent"
    assert "/projects/" not in request.identity and request.identity.startswith(access.target.base_url)


def unsent(folder: Path, **environment: str) -> Settings:
    """Settings with which nothing is sent, so that no credentials are looked at."""
    return structs.replace(settings_for(folder, **environment), needs_keys=False)


def test_a_key_in_the_cache_needs_neither_project_nor_credentials(tmp_path: Path) -> None:
    with_project = access_to(MODEL, unsent(tmp_path, GOOGLE_CLOUD_PROJECT="p"))
    without = access_to(MODEL, unsent(tmp_path))
    call = Call(MODEL, "x")
    assert keyless_endpoint_to(with_project).encode(call).identity == keyless_endpoint_to(without).encode(call).identity


def test_accounts_are_told_apart_by_their_credentials_and_projects(tmp_path: Path) -> None:
    def account(**environment: str) -> str:
        return access_to(MODEL, unsent(tmp_path, **environment)).account

    one = account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="p")
    assert one == account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="p")
    assert one != account(GOOGLE_APPLICATION_CREDENTIALS="/two", GOOGLE_CLOUD_PROJECT="p")
    assert one != account(GOOGLE_APPLICATION_CREDENTIALS="/one", GOOGLE_CLOUD_PROJECT="q")


def test_either_of_geminis_variables_holds_its_key(tmp_path: Path) -> None:
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        settings = settings_for(tmp_path, **{variable: "AIza-0123456789"})
        access = access_to("gemini/gemini-2.5-flash", settings)
        assert access.credentials.key == "AIza-0123456789"
        assert access.target.base_url == "https://generativelanguage.googleapis.com"
    with pytest.raises(ConfigurationError, match="needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY"):
        access_to("gemini/gemini-2.5-flash", settings_for(tmp_path))
