"""Configuration files: strict, with file and line, and a key is never shown."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from msgspec import structs

from millstream.configuration.configuration import Configuration, configuration_of, read_configuration, settings_for
from millstream.configuration.documents import Document
from millstream.configuration.errors import UsageError
from millstream.configuration.options import SendingOptions
from millstream.engine.call import Call
from millstream.engine.endpoint import Request
from millstream.engine.key import key_of
from millstream.engine.lane import Lane
from millstream.engine.prices import Price
from millstream.providers.table import PROVIDERS, Provider
from millstream.wiring import Settings, access_to

GOOD = """
[lanes."openai/gpt-4o-mini"]   # a comment
rpm = 10_000
tpm = 2_000_000
concurrency = 64
timeout = "90s"
keys = ["env:LAB_KEY"]

[providers.mylab]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1/"
key = "env:LAB_KEY"
identity = "lab"

[prices."mylab/tiny"]
input = 0.5
output = 1
"""


def written(tmp_path: Path, text: str, name: str = "c.toml") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_everything_that_a_file_declares_is_taken(tmp_path: Path) -> None:
    found = configuration_of(Document(written(tmp_path, GOOD)))
    assert found.lanes == (Lane("openai/gpt-4o-mini", 10_000, 2_000_000, 64, 90.0),)
    assert found.key_variables == {"openai/gpt-4o-mini": ("LAB_KEY",)}
    assert found.providers == {"mylab": Provider("http://127.0.0.1:8000/v1", "LAB_KEY", None, "lab")}
    assert found.prices == {"mylab/tiny": Price(0.5, 1)}


def test_yaml_declares_the_same(tmp_path: Path) -> None:
    text = """
lanes:
  openai/gpt-4o-mini: {rpm: 10_000, tpm: 2_000_000, concurrency: 64, timeout: 90s, keys: ["env:LAB_KEY"]}
providers:
  mylab: {kind: openai, base_url: "http://127.0.0.1:8000/v1/", key: "env:LAB_KEY", identity: lab}
prices:
  mylab/tiny: {input: 0.5, output: 1}
"""
    assert configuration_of(Document(written(tmp_path, text, "c.yaml"))) == configuration_of(
        Document(written(tmp_path, GOOD))
    )


WRONG = {
    "unknown table": ('[lane."a/b"]\nrpm = 1', "line 1: [lane]: unknown table (nearest: lanes)"),
    "unknown key": ('[lanes."a/b"]\nrpm = 1\nrmp = 2', 'line 3: [lanes."a/b"] rmp: unknown key (nearest: rpm)'),
    "a text for a number": (
        '[lanes."a/b"]\n\nrpm = "abc"',
        'line 3: [lanes."a/b"] rpm: expected a number of requests a minute, 1 to 1,000,000,000,000, got the text "abc"',
    ),
    "a number in quotes": ('[lanes."a/b"]\nrpm = "500"', 'got the text "500"'),
    "true for a number": ('[lanes."a/b"]\nrpm = true', "got True"),
    "a negative number": ('[lanes."a/b"]\ntpm = -1', 'line 2: [lanes."a/b"] tpm: expected a number of tokens'),
    "NaN": ('[lanes."a/b"]\ntpm = nan', "got nan"),
    "an inline table": ('[lanes]\n"a/b" = {rpm = 0}', 'line 2: [lanes."a/b"] rpm: expected'),
    "a lane without provider": ("[lanes.gpt]\nrpm = 1", "line 1: [lanes] gpt: expected a model as provider/model"),
    "a pattern for a lane": (
        '[lanes."openai/*"]\nrpm = 5',
        '[lanes] openai/*: expected a model as provider/model, such as openai/gpt-6-luna, got "openai/*": name each '
        "model, without *",
    ),
    "a pattern for a price": ('[prices."openai/*"]\ninput = 1\noutput = 1', "name each model, without *"),
    "a pattern of hosts": ('[lanes."web/*.org"]\nrpm = 1', 'or web/* for every host'),
    "no table": ("lanes = 3", "line 1: [lanes]: expected a table, got int"),
    "an unknown kind": (
        '[providers.x]\nkind = "telepathy"\nbase_url = "http://h"',
        "line 2: [providers.x] kind: expected one of openai",
    ),
    "no address": ('[providers.x]\nkind = "openai"', "line 1: [providers] x: expected base_url, got none: add it"),
    "half a price": ('[prices."a/b"]\ninput = 1', "line 1: [prices] a/b: expected output, got none: add it"),
    "bad TOML": ('[lanes."a/b"]\nrpm = = 3', "line 2: expected TOML, got something else: Invalid value"),
    "given twice": ('[lanes."a/b"]\nrpm = 1\nrpm = 2', "line 3: expected TOML, got something else"),
    "an open end": ('[lanes."a/b"', "expected TOML, got something else"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, case: str) -> None:
    text, expected = WRONG[case]
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as refusal:
        configuration_of(Document(path))
    assert str(refusal.value).startswith(f"{path}: ")
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)


WRONG_YAML = {
    "a text for a number": ("lanes:\n  a/b:\n    rpm: abc", 'line 3: [lanes."a/b"] rpm: expected a number'),
    "given twice": ("lanes:\n  a/b: {rpm: 1}\n  a/b: {rpm: 2}", "line 3: [lanes] a/b: given twice, first in line 2"),
    "bad YAML": ("lanes: [", "line 1: expected YAML, got something else"),
    "an alias": ("lanes: &x {}\nprices: *x", "expected YAML without aliases"),
    "an object": ("lanes: !!python/object/apply:os.getcwd []", "expected YAML, got something else"),
    "a list": ("- 1", "expected tables such as lanes and run, got list"),
    "a number for a name": ("lanes:\n  3: {rpm: 1}", "expected names as keys, got 3"),
}


@pytest.mark.parametrize("case", WRONG_YAML)
def test_yaml_is_refused_in_the_same_way(tmp_path: Path, case: str) -> None:
    text, expected = WRONG_YAML[case]
    with pytest.raises(UsageError) as refusal:
        configuration_of(Document(written(tmp_path, text, "c.yaml")))
    assert expected in str(refusal.value)


CANARY = "sk-canary-0cc175b9c0f1b6a8"


@pytest.mark.parametrize(
    "text",
    [
        f'[lanes."a/b"]\nkeys = ["{CANARY}"]',
        f'[lanes."a/b"]\nkeys = "{CANARY}"',
        f'[lanes."a/b"]\nkeys = ["env:GOOD", "{CANARY}"]',
        f'[lanes."a/b"]\nkeys = ["env:{CANARY}"]',
        f'[providers.x]\nbase_url = "http://h/v1"\nkey = "{CANARY}"',
        f'[providers.x]\nbase_url = "http://me:{CANARY}@h/v1"',
    ],
)
def test_a_key_that_is_written_out_is_refused_and_never_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        configuration_of(Document(written(tmp_path, text)))
    assert "line " in str(refusal.value)
    error: BaseException | None = refusal.value
    while error is not None:
        assert CANARY not in str(error)
        error = error.__cause__


def test_a_lane_may_have_several_keys_and_input_and_output_apart(tmp_path: Path) -> None:
    text = '[lanes."a/b"]\nkeys = ["env:ONE", "env:TWO"]\nitpm = 80_000\notpm = 16_000'
    found = configuration_of(Document(written(tmp_path, text)))
    assert found.key_variables == {"a/b": ("ONE", "TWO")}
    assert found.lanes == (Lane("a/b", itpm=80_000, otpm=16_000),)


def test_a_key_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"keys: expected a list of env:NAME, each named once"):
        configuration_of(Document(written(tmp_path, '[lanes."a/b"]\nkeys = ["env:ONE", "env:ONE"]')))


def test_a_configuration_holds_no_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="start these with `millstream run"):
        read_configuration(str(written(tmp_path, "[run]\nout = 'x'")))


def test_flags_go_before_the_file_and_only_models_that_are_asked_have_lanes(tmp_path: Path) -> None:
    found = configuration_of(Document(written(tmp_path, GOOD)))
    settings = settings_for(("openai/gpt-4o-mini", "sim/open"), SendingOptions(rpm=7, mode="strict"), found)
    assert settings.lanes == (Lane("openai/gpt-4o-mini", 7, 2_000_000, 64, 90.0), Lane("sim/open", 7))
    assert settings.mode == "strict"
    assert settings_for(("sim/open",), SendingOptions(), found).lanes == (Lane("sim/open"),)
    assert settings_for(("sim/open",), SendingOptions(), found).key_variables == {}


def test_a_known_provider_keeps_what_the_file_does_not_say(tmp_path: Path) -> None:
    text = '[providers.openai]\nbase_url = "http://127.0.0.1:1/v1"\n[providers.sim]\nidentity = "other"'
    found = configuration_of(Document(written(tmp_path, text))).providers
    assert found["openai"].key_variable == "OPENAI_API_KEY"
    assert found["openai"].url_variable is None
    assert found["sim"].base_url == PROVIDERS["sim"].base_url


def test_a_table_that_names_a_kind_begins_with_the_provider_that_the_kind_was_made_for(tmp_path: Path) -> None:
    text = '[providers.work]\nkind = "azure"\nkey = "env:WORK_KEY"\nversion = "2024-10-21"\n'
    text += '[providers.openai]\nkind = "openai-responses"'
    found = configuration_of(Document(written(tmp_path, text))).providers
    azure, work = PROVIDERS["azure"], found["work"]
    assert (work.kind, work.key_variable, work.url_variable) == ("azure", "WORK_KEY", azure.url_variable)
    assert (work.version, work.names) == ("2024-10-21", azure.names)
    assert found["openai"] == PROVIDERS["openai-responses"]


def test_what_a_file_says_of_version_region_and_project_goes_before_any_variable(tmp_path: Path) -> None:
    text = '[providers.azure]\nversion = "preview"\nregion = "r"\nproject = "p"'
    found = configuration_of(Document(written(tmp_path, text))).providers["azure"]
    assert (found.version, found.region, found.project) == ("preview", "r", "p")
    assert "version" in PROVIDERS["azure"].fact_variables and found.fact_variables == {}


def test_a_server_of_ones_own_may_want_the_newer_name_for_max_tokens(tmp_path: Path) -> None:
    text = '[providers.x]\nbase_url = "http://h/v1"\nmax_tokens_name = "max_completion_tokens"\n'
    text += '[providers.openai]\nbase_url = "http://h/v1"\nmax_tokens_name = "max_completion_tokens"'
    found = configuration_of(Document(written(tmp_path, text))).providers
    settings = Settings(providers=found, environment={"OPENAI_API_KEY": "k"})
    for model in ("x/m", "openai/m"):
        assert access_to(model, settings).target.names == {"max_tokens": "max_completion_tokens"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_store_is_sent_to_responses_and_is_in_no_key(stream: bool, tmp_path: Path) -> None:
    call = Call("openai-responses/gpt-6-luna", "x", stream=stream)

    def request(store: str, call: Call = call) -> Request:
        text = f"[providers.openai-responses]\n{store}"
        found = configuration_of(Document(written(tmp_path, text))).providers
        access = access_to(call.model, Settings(providers=found, environment={"OPENAI_API_KEY": "k"}))
        return access.protocol.encode(call, access.target)

    kept, unkept = request("region = 'r'"), request("store = false")
    assert "store" not in orjson.loads(kept.wire)
    assert orjson.loads(unkept.wire) == {**orjson.loads(kept.wire), "store": False}
    assert (unkept.body, unkept.params, key_of(unkept, 0)) == (kept.body, kept.params, key_of(kept, 0))
    # What a call itself says goes before the provider's setting.
    assert orjson.loads(request("store = false", structs.replace(call, extra={"store": True})).wire)["store"] is True


def test_store_is_refused_where_no_protocol_sends_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only kind openai-responses has it: leave it out"):
        configuration_of(Document(written(tmp_path, "[providers.openai]\nstore = false")))


OTHERS = Settings().others
SENT = SendingOptions(
    base_url="http://127.0.0.1:9/v1",
    rpm=7,
    tpm=900,
    concurrency=3,
    max_cost=2,
    tier="flex",
    cache="~/kept",
    ray="local",
    workers=3,
    mode="replay",
    patience=9,
    timeout=8,
    max_age=60,
    snapshot="~/first.snapshot",
    allow_host=("a.test", "b.test"),
    sink="rows",
)


@pytest.mark.parametrize("name", [name for name in SendingOptions.__struct_fields__ if name != "config"])
def test_each_option_of_sending_decides_a_setting(name: str) -> None:
    given = SendingOptions(**{name: getattr(SENT, name)})
    made, plain = (
        structs.replace(settings_for(("sim/open",), sending, Configuration()), others=OTHERS)
        for sending in (given, SendingOptions())
    )
    assert made != plain and plain == structs.replace(plain)


def test_options_of_sending_become_settings_under_the_names_that_these_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/base/me")
    # A snapshot is read here, and no cluster carries what is in it.
    made = settings_for(("sim/open",), structs.replace(SENT, ray=None, workers=None), Configuration())
    carried = settings_for(("sim/open",), structs.replace(SENT, snapshot=None, mode="record"), Configuration())
    assert (made.cluster, carried.cluster, carried.workers) == (None, "local", 3)
    assert made.lanes == (Lane("sim/open", rpm=7, tpm=900, concurrency=3, timeout_s=8),)
    assert (made.policy.patience_s, made.max_age_s, made.allow_hosts) == (9, 60, ("a.test", "b.test"))
    assert (str(made.cache), str(made.snapshot)) == ("/base/me/kept", "/base/me/first.snapshot")
