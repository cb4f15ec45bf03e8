"""`millstream models`: providers, their keys and prices, and whether each answers; no key is ever shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider

from millstream.configuration.errors import RESUMABLE, WITH_FAILURES, WRONG_USAGE
from millstream.fixtures.provider import ModelProvider, Options
from millstream.interfaces.cli.checks import Check, cheapest, line
from millstream.providers.table import PROVIDERS
from millstream.wiring import Settings

CANARY = "sk-canary-0cc175b9c0f1b6a8"


def listed(cli: CommandLine, *arguments: str) -> dict[str, Any]:
    done = cli("models", "--json", *arguments)
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_every_provider_is_told_with_the_key_it_needs_and_whether_that_is_set(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XAI_API_KEY", CANARY)
    monkeypatch.setenv("GROQ_API_KEY", "  ")
    (tmp_path / "c.toml").write_text('[providers.lab]\nbase_url = "http://127.0.0.1:9/v1"\nkey = "env:LAB_KEY"\n')
    found = {one["name"]: one for one in listed(cli, "--config", "c.toml")["providers"]}
    assert set(found) == {*PROVIDERS, "lab"}
    assert (found["xai"]["variables"], found["xai"]["set"]) == (["XAI_API_KEY"], ["XAI_API_KEY"])
    assert (found["groq"]["is_needed"], found["groq"]["set"]) == (True, [])
    assert (found["sim"]["is_needed"], found["sim"]["variables"]) == (False, [])
    assert found["lab"] == {
        "name": "lab",
        "kind": "openai",
        "address": "http://127.0.0.1:9/v1",
        "address_variable": None,
        "is_needed": True,
        "variables": ["LAB_KEY"],
        "set": [],
        "missing": [],
        "found": None,
        "lost": None,
        "is_ready": False,
    }
    told = cli("models", "--config", "c.toml")
    assert (
        found["xai"]["is_ready"]
        and "XAI_API_KEY: set" in told.out
        and "OPENAI_API_KEY: not set" in told.out
        and "none needed" in told.out
    )
    assert CANARY[:8] not in told.out + told.err + json.dumps(found)


def test_prices_are_told_with_their_day_and_source_and_ones_own_first(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[prices."openai/gpt-4o"]\ninput = 1\noutput = 2\n')
    found = {one["model"]: one for one in listed(cli, "--config", "c.toml")["models"]}
    assert found["openai/gpt-4o"]["source"] == "your configuration" and found["openai/gpt-4o"]["as_of"] is None
    assert (found["openai/gpt-4o-mini"]["input"], found["openai/gpt-4o-mini"]["output"]) == (0.15, 0.6)
    priced = {model: one for model, one in found.items() if one["input"] is not None}
    assert all(one["as_of"] and one["source"] for model, one in priced.items() if model != "openai/gpt-4o")
    told = cli("models").out
    # A search costs by the request: its price stands in the table of search engines alone.
    assert not any(model.startswith("search/") for model in found)
    assert "$5 per 1,000 requests" in told and "$0.00  $0.00" not in told
    assert "dollars a million tokens, as listed on that day; check them" in told
    assert [line.split()[:4] for line in told.splitlines() if line.startswith("openai/gpt-4o-mini ")] == [
        ["openai/gpt-4o-mini", "$0.15", "$0.60", "2025-06-30"]
    ]


def test_a_name_lists_its_provider_and_its_models_alone(cli: CommandLine) -> None:
    found = listed(cli, "openai", "search/brave")
    assert [one["name"] for one in found["providers"]] == ["openai"]
    assert [one["name"] for one in found["searches"]] == ["search/brave"]
    assert found["models"] and all(one["model"].startswith("openai/") for one in found["models"])
    few = cli("models", "openai/gpt-4o").out
    assert "openai/gpt-4o-mini" in few and "openai/gpt-6-luna" not in few and "search/" not in few
    wrong = cli("models", "opnai")
    assert wrong.code == WRONG_USAGE and "no provider or search engine 'opnai' (nearest: openai" in wrong.err


def test_a_check_makes_one_tiny_call_each_and_says_what_came(cli: CommandLine, provider: Provider) -> None:
    at = ("--base-url", provider.base_url, "--cache", "cache")
    for _ in range(2):  # nothing is taken from the cache, and nothing left there
        done = cli("models", "--check", "sim/open", "sim/steady", *at)
        assert (done.code, done.err) == (0, "")
        first, second = done.out.splitlines()
        assert first.startswith("sim/open: ok, ") and second.startswith("sim/steady: ok, ")
        assert " tokens, no price" in first
    assert provider.calls() == 4
    found = json.loads(cli("models", "--check", "sim/open", "--json", *at).out)["checks"]
    assert [(one["model"], one["key"], one["status"], one["cost"]) for one in found] == [("sim/open", None, "ok", None)]
    assert "0 answers" in cli("cache", "stats", "--cache", "cache").out


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (
            "unauthorized",
            RESUMABLE,
            "sim/open: dead_key: sim/open refuses the key (401: Incorrect API key provided.): correct it\n",
        ),
        ("insufficient_quota", RESUMABLE, "sim/open: empty_account: the account can't pay"),
        ("redirect", RESUMABLE, "sim/open: redirect: "),
        ("rejected", WITH_FAILURES, "sim/open: rejected: 400"),
        ("server_error", WITH_FAILURES, "sim/open: server_error: 500"),
        ("rate_limited", WITH_FAILURES, "sim/open: rate_limited: 429"),
        ("content_filter", 0, "sim/open: refused, "),
        ("length", 0, "sim/open: ok, "),
    ],
)
def test_what_is_wrong_is_said_in_one_line_each(
    cli: CommandLine, provider: Provider, fault: str, code: int, said: str
) -> None:
    provider.set_faults(fault)
    done = cli("models", "--check", "sim/open", "--base-url", provider.base_url, "--cache", "cache")
    assert done.code == code
    assert done.out.startswith(said), done.out
    assert (done.out.count("\n"), done.err) == (1, "")


def test_a_server_that_is_not_there_is_told_soon(cli: CommandLine) -> None:
    done = cli("models", "--check", "sim/open", "--base-url", "http://127.0.0.1:9/v1", "--cache", "cache")
    assert done.code == WITH_FAILURES and done.out.startswith("sim/open: connect: ")


def test_each_key_of_a_lane_is_checked_and_a_missing_one_is_said(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setenv("LAB_KEY", "sk-good-0123456789abcdef")
    monkeypatch.setenv("LAB_KEY_2", CANARY)

    async def scenario() -> tuple[Any, int]:
        async with ModelProvider(Options(keys=("sk-good-0123456789abcdef",))) as sim:
            (tmp_path / "c.toml").write_text(
                f'[providers.lab]\nbase_url = "{sim.base_url}"\nkey = "env:LAB_KEY"\n'
                '[lanes."lab/open"]\nkeys = ["env:LAB_KEY", "env:LAB_KEY_2"]\n[lanes."lab/steady"]\nrpm = 60\n'
            )
            done = await asyncio.to_thread(cli, "models", "--check", "--config", "c.toml", "--cache", "cache")
            return done, sim.log.total

    done, received = asyncio.run(scenario())
    lines = done.out.splitlines()
    assert done.code == RESUMABLE and len(lines) == 3
    assert lines[0].startswith("lab/open (LAB_KEY): ok, ")
    assert lines[1].startswith("lab/open (LAB_KEY_2): dead_key: lab/open refuses the key in LAB_KEY_2 (")
    assert lines[2].startswith("lab/steady (LAB_KEY): ok, ")
    assert received == 2 + 2  # a dead key is asked once more before it is called dead
    assert CANARY not in done.out + done.err
    missing = cli("models", "--check", "openai/gpt-4o", "--cache", "cache")
    assert missing.code == RESUMABLE
    assert missing.out.startswith("openai/gpt-4o: not sent: model 'openai/gpt-4o' needs a key: set OPENAI_API_KEY")


def key_column(cli: CommandLine, provider: str) -> str:
    (line,) = [line for line in cli("models").out.splitlines() if line.startswith(f"{provider} ")]
    return line.split("  ", 2)[-1].rsplit("  ", 1)[0].split(None, 1)[1].strip()


def test_half_a_key_is_told_as_such(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACANARYKEY1234567")
    (bedrock,) = [one for one in listed(cli)["providers"] if one["name"] == "bedrock"]
    assert (bedrock["set"], bedrock["missing"]) == (["AWS_ACCESS_KEY_ID"], ["AWS_SECRET_ACCESS_KEY"])
    assert not bedrock["is_ready"]
    assert key_column(cli, "bedrock") == "AWS_ACCESS_KEY_ID: set; AWS_SECRET_ACCESS_KEY: not set"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    assert key_column(cli, "bedrock") == "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: set"


def test_what_is_no_key_is_in_no_column_of_keys(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GCLOUD_PROJECT", "p")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    assert key_column(cli, "vertex") == "GOOGLE_APPLICATION_CREDENTIALS: not set, may not be needed"


def test_keys_in_files_are_found_where_they_stand(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_PROFILE", "work")
    google = tmp_path / "home" / ".config" / "gcloud" / "application_default_credentials.json"
    aws = tmp_path / "home" / ".aws" / "credentials"
    for path, text in ((google, "{}"), (aws, f"[work]\naws_access_key_id=AKIA\naws_secret_access_key={CANARY}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert key_column(cli, "bedrock") == "the AWS profile 'work': found"
    assert key_column(cli, "vertex") == f"{google}: found"


def test_a_provider_that_needs_no_key_is_checked_where_it_has_one(
    cli: CommandLine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, row in PROVIDERS.items():
        for variable in (row.key_variable, *row.key_variables_too):
            monkeypatch.delenv(variable or name, raising=False)
    priced = "".join(f'[prices."{model}"]\ninput = 1\noutput = 1\n' for model in ("vllm/open", "ollama/open"))
    (tmp_path / "c.toml").write_text(f'[providers.vllm]\nbase_url = "{provider.base_url}"\n{priced}')
    monkeypatch.setenv("VLLM_API_KEY", CANARY)
    done = cli("models", "--check", "--json", "--cache", "cache", "--config", "c.toml")
    assert [(one["model"], one["status"]) for one in json.loads(done.out)["checks"]] == [("vllm/open", "ok")]


def test_a_key_that_is_not_set_keeps_no_other_from_being_checked(
    cli: CommandLine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY_2", CANARY)
    monkeypatch.setenv("LAB_KEY_3", CANARY)
    names = ", ".join(f'"env:LAB_KEY_{number}"' for number in (2, 1, 3))
    (tmp_path / "c.toml").write_text(
        f'[providers.lab]\nbase_url = "{provider.base_url}"\n[lanes."lab/open"]\nkeys = [{names}]\n'
    )
    done = cli("models", "--check", "--config", "c.toml", "--cache", "cache")
    first, second = done.out.splitlines()  # of two that are the same one is checked
    assert done.code == RESUMABLE and provider.calls() == 1
    assert first.startswith("lab/open (LAB_KEY_2): ok, ")
    assert second.startswith("lab/open (LAB_KEY_1): not sent: model 'lab/open' needs a key: set LAB_KEY_1")


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("anthropic/claude-sonnet-4-6", "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or give its server"),
        ("azure/mine", "AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN, or give its server"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY or GOOGLE_API_KEY, or give its server"),
    ],
)
def test_a_missing_key_is_told_with_every_variable_that_would_do(
    cli: CommandLine, model: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in wanted.partition(",")[0].split(" or "):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    assert f"needs a key: set {wanted} with --base-url" in cli("models", "--check", model, "--cache", "cache").out


@pytest.mark.needs_benchmark("millstone")
def test_vertex_without_credentials_is_refused_before_anything_is_sent(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    model = "vertex/gemini-2.5-pro"
    done = cli("run", "millstone", "--model", model, "--limit", "1", "--out", "run", "--no-progress")
    assert done.code == WRONG_USAGE and not (tmp_path / "run").exists()
    assert f"model '{model}': no Google credentials found" in done.err
    assert "gcloud auth application-default login" in done.err
    assert "not sent: model 'vertex/gemini-2.5-pro': no Google credentials found" in cli("models", "--check", model).out


def test_without_names_the_cheapest_of_each_provider_whose_key_is_set_is_asked(
    cli: CommandLine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "XAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    done = cli("models", "--check", "--json", "--cache", "cache")
    assert [one["model"] for one in json.loads(done.out)["checks"]] == cheapest(["openai"], Settings())
    monkeypatch.delenv("OPENAI_API_KEY")
    none = cli("models", "--check")
    assert none.code == WRONG_USAGE and "models --check: expected models" in none.err


def test_the_cheapest_is_by_the_price_of_both_kinds_of_tokens_among_those_that_still_answer() -> None:
    settings = Settings(clock=datetime(2026, 11, 26, tzinfo=UTC).timestamp)
    prices = settings.price_table()
    for provider in ("openai", "anthropic", "gemini", "xai"):
        (found,) = cheapest([provider], settings)
        price = prices.get(found)
        assert price is not None
        own = [
            listed.price
            for model, listed in prices.models.items()
            if model.startswith(f"{provider}/") and (settings.facts_of(model).retires or "9") > "2026-11-26"
        ]
        assert price.input + price.output == min(one.input + one.output for one in own)
    # What was cheapest of all is gone.
    assert settings.facts_of("groq/llama-3.1-8b-instant").retires == "2026-08-16"
    assert cheapest(["groq"], settings) != ["groq/llama-3.1-8b-instant"]
    assert cheapest(["sim", "nobody"], settings) == []


def test_a_limit_on_cost_holds_for_all_checks_together(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[prices."sim/open"]\ninput = 1000\noutput = 1000\n')
    sent = ("--base-url", provider.base_url, "--cache", "cache", "--config", "c.toml", "--max-cost", "0.001")
    done = cli("models", "--check", "sim/open", "sim/steady", *sent)
    assert done.code == RESUMABLE
    first, second = done.out.splitlines()
    assert first.startswith("sim/open: budget: the next call to sim/open may cost $")
    assert second.startswith("sim/steady: not sent: model 'sim/steady' has no price")
    assert provider.calls() == 0


def test_a_file_of_credentials_that_is_not_there_is_said_to_be_missing(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "none.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    (found,) = [one for one in listed(cli)["providers"] if one["name"] == "vertex"]
    assert (found["lost"], found["is_ready"]) == (str(path), False)
    assert f"GOOGLE_APPLICATION_CREDENTIALS: set; there is no file {path}" in cli("models").out
    path.write_text("{}")
    (found,) = [one for one in listed(cli)["providers"] if one["name"] == "vertex"]
    assert (found["lost"], found["is_ready"]) == (None, True)


@pytest.mark.parametrize("model", ["nosuch/x", "search/nosuch"])
def test_a_provider_that_nobody_knows_is_wrong_usage(cli: CommandLine, model: str) -> None:
    done = cli("models", "--check", model, "--cache", "cache")
    assert (done.code, done.out) == (WRONG_USAGE, "")
    assert "'nosuch'" in done.err and "; known are" in done.err and done.err.count("\n") == 1


def test_a_check_says_who_answers_in_place_of_the_model_and_since_when(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text('[models."sim/open"]\nanswers_as = "xai/grok-3"\n')
    provider.set_faults("served_as=grok-4.3,model=open")
    sent = ("--base-url", provider.base_url, "--cache", "cache")
    assert cli("models", "--check", "sim/open", *sent, "--config", "c.toml").out.endswith("answered by grok-4.3\n")
    provider.set_faults()
    settings = Settings(clock=datetime(2026, 11, 26, tzinfo=UTC).timestamp)
    gone = line(Check("xai/grok-3", "", "ok", served="grok-4.3"), settings)
    since = "xai/grok-3 was retired on 2026-05-15: xai/grok-4.3 answers under its name"
    assert gone == f"xai/grok-3: ok, 0.00 s, no price, answered by grok-4.3; {since}"
    same = Check("openai/gpt-4o", "", "ok", served="gpt-4o-2024-08-06")
    assert line(same, settings) == "openai/gpt-4o: ok, 0.00 s, no price"


def test_the_list_says_which_models_are_gone_who_answers_for_them_and_what_is_ignored(cli: CommandLine) -> None:
    rows = {line.split()[0]: line for line in cli("models").out.splitlines() if line}
    assert "was retired on 2026-05-15: xai/grok-4.3 answers under its name" in rows["xai/grok-3"]
    assert "temperature is ignored" in rows["gemini/gemini-3.8-flash"]
    assert "temperature is refused" in rows["anthropic/claude-opus-5-5"]
    assert "temperature only at effort none" in rows["openai/gpt-6-luna"] and "temp" not in rows["openai/gpt-4o"]
    every = {one["model"]: one for one in json.loads(cli("models", "--json").out)["models"]}
    gone = every["openai/gpt-3.5-turbo"]
    assert (gone["input"], gone["source"], gone["retires"]) == (None, None, "2026-10-23")
    assert every["openai/gpt-6.1-terra"]["temperature"] == "at-no-effort"
