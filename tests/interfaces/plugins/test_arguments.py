"""What a harness was told about how to send."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.configuration.configuration import settings_of
from millstream.configuration.errors import UsageError
from millstream.configuration.options import SendingOptions
from millstream.interfaces.plugins.arguments import check_model, sending_of
from millstream.wiring import ConfigurationError

FILE = """
[lanes."openai/gpt-4o"]
rpm = 500
concurrency = 64
[lanes."mylab/large"]
rpm = 60
[lanes."nowhere/small"]
rpm = 60
[providers.mylab]
base_url = "http://127.0.0.1:8000/v1"
[prices."openai/steady"]
input = 1
output = 2
"""


def test_arguments_are_read_as_flags_are_whatever_type_a_harness_gives_them() -> None:
    found = sending_of({"rpm": "500", "tpm": 2e5, "concurrency": 8, "timeout": "2m", "cache": "~/kept", "mode": None})
    assert found == SendingOptions(rpm=500.0, tpm=200_000.0, concurrency=8, timeout=120.0, cache="~/kept")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rpn": 5}, "millstream takes no argument rpn (nearest: rpm); it takes base_url, rpm, tpm, "),
        ({"mode": "fast"}, 'argument mode: expected one of live, record, replay, strict, got "fast"'),
        ({"base_url": "127.0.0.1"}, "argument base_url: expected an address such as http://127.0.0.1:8000/v1, "),
        ({"concurrency": 0}, "argument concurrency: expected a whole number of calls in flight, 1 to 100,000, got 0"),
    ],
)
def test_a_wrong_argument_is_told_in_one_line(given: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        sending_of(given)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_the_file_declares_lanes_for_every_model_and_flags_go_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    (tmp_path / "lanes.toml").write_text(FILE)
    settings = settings_of(SendingOptions(config=str(tmp_path / "lanes.toml"), rpm=100))
    check_model("openai/gpt-4o", settings)
    check_model("mylab/other", settings)
    assert (settings.quota_of("openai/gpt-4o").rpm, settings.concurrency_of("openai/gpt-4o")) == (100, 64)
    assert settings.quota_of("mylab/other").rpm == 100


def test_a_lane_of_the_file_is_missed_only_by_who_asks_for_its_model(tmp_path: Path) -> None:
    (tmp_path / "lanes.toml").write_text(FILE)
    settings = settings_of(SendingOptions(config=str(tmp_path / "lanes.toml")))
    assert [lane.model for lane in settings.lanes if lane.model == "nowhere/small"] == []
    with pytest.raises(ConfigurationError, match="nowhere"):
        check_model("nowhere/small", settings)


def test_a_budget_without_a_price_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "lanes.toml").write_text(FILE)
    sending = SendingOptions(config=str(tmp_path / "lanes.toml"), base_url="http://127.0.0.1:1/v1", max_cost=1.0)
    settings = settings_of(sending)
    check_model("openai/steady", settings)
    with pytest.raises(UsageError, match="openai/open has no price"):
        check_model("openai/open", settings)


@pytest.mark.parametrize("model", ["gpt-4o", "web", "search/brave", "openai/", "openai/a b"])
def test_what_is_no_model_of_a_provider_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match="provider/model"):
        check_model(model, settings_of(SendingOptions(base_url="http://127.0.0.1:1/v1")))
