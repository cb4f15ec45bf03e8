"""Which pairs a run asks, how a specification names them, and what their rows are called."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.evaluation.door.run_line import RunLine
from millstream.bench.evaluation.door.treatments import pairs_in, specified_pairs, treatments_in
from millstream.bench.evaluation.planning.preparation import check_models_take, pairs_of
from millstream.configuration.errors import UsageError
from millstream.engine.call import Call
from millstream.engine.pairs import Pair, order_of
from millstream.engine.runs.run_folder import FORMAT
from millstream.metrics.naming import row_names
from millstream.providers.models import Facts
from millstream.wiring import Settings

REFUSED = Facts(thinks=True, temperature="refused")
AT_NONE = Facts(thinks=True, temperature="at-no-effort")
SETTINGS = Settings(models={"sim/refuses": REFUSED, "sim/at-none": AT_NONE}, needs_keys=False, base_url="http://h/v1")


def made(*models: str, temperatures: Any = (), efforts: Any = (), out: Path = Path("none")) -> list[Pair]:
    return list(pairs_of(models, temperatures, efforts, SETTINGS, out)[0])


def test_a_row_is_named_by_its_treatment_where_its_model_has_several() -> None:
    pairs = [Pair("m", 0.5), Pair("m", None, "low"), Pair("m", 0.0, "low"), Pair("m", None), Pair("n", 1.0, "low")]
    assert list(row_names(pairs).values()) == ["m @ 0.5", "m @ low", "m @ 0, low", "m @ default", "n"]
    assert [str(pair) for pair in pairs[:4]] == ["m @ 0.5", "m @ low", "m @ 0, low", "m"]
    assert sorted(pairs[:4], key=order_of) == [Pair("m", None), Pair("m", 0.5), Pair("m", None, "low"), pairs[2]]


def test_every_model_is_asked_at_every_temperature_and_effort() -> None:
    assert made("sim/a", temperatures=(None, 0.5), efforts=("none", "low")) == [
        Pair("sim/a", None, "none"),
        Pair("sim/a", 0.5, "none"),
        Pair("sim/a", None, "low"),
        Pair("sim/a", 0.5, "low"),
    ]
    assert made("sim/a", "sim/b") == [Pair("sim/a", None), Pair("sim/b", None)]


def test_a_temperature_is_sent_only_where_the_model_takes_it_at_that_effort() -> None:
    pairs, notes = pairs_of(("sim/at-none", "sim/refuses"), (0.0, 1.0), ("none", "low"), SETTINGS, Path("none"))
    assert pairs == (
        Pair("sim/at-none", 0.0, "none"),
        Pair("sim/at-none", 1.0, "none"),
        Pair("sim/at-none", None, "low"),
        Pair("sim/refuses", None, "none"),
        Pair("sim/refuses", None, "low"),
    )
    assert notes == (
        "sim/at-none @ low, sim/refuses @ none, sim/refuses @ low take no temperature: each is asked once, without one",
    )
    (note,) = pairs_of(("sim/refuses",), (0.0,), (), SETTINGS, Path("none"))[1]
    assert note == "sim/refuses takes no temperature: it is asked once, without one"
    assert pairs_of(("sim/refuses",), (None,), (), SETTINGS, Path("none"))[1] == ()


def test_a_run_that_has_begun_goes_on_with_the_temperatures_that_it_sent(tmp_path: Path) -> None:
    manifest = {
        "format": FORMAT,
        "specification": {"models": ["sim/refuses"], "temperatures": [0.0, 1.0]},
        "specification_hash": "",
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    asked = made("sim/refuses", temperatures=(0.0, 1.0), out=tmp_path)
    assert asked == [Pair("sim/refuses", 0.0), Pair("sim/refuses", 1.0)]


def test_runs_without_an_effort_have_the_specification_that_they_always_had() -> None:
    plain = [Pair(model, temperature) for model in ("a/b", "c/d") for temperature in (0.0, 1.0)]
    assert specified_pairs(plain) == {"models": ["a/b", "c/d"], "temperatures": [0.0, 1.0]}
    assert pairs_in(specified_pairs(plain)) == plain
    uneven = [Pair("a/b", 0.0), Pair("c/d", None), Pair("c/d", None, "low")]
    assert specified_pairs(uneven)["pairs"] == [["a/b", 0.0], ["c/d", None], ["c/d", None, "low"]]
    assert pairs_in(json.loads(json.dumps(specified_pairs(uneven)))) == uneven
    assert treatments_in(specified_pairs(plain)) == {"Temperature": "0, 1"}
    assert treatments_in(specified_pairs(uneven)) == {"Temperature": "0, not sent", "Reasoning effort": "low"}


@pytest.mark.parametrize(
    ("model", "effort", "words"),
    [
        ("openai/m", "wow", "none, minimal, low, medium, high, xhigh, max, default"),
        ("openai/m", "1024", "none, minimal"),
        ("anthropic/claude-x", "minimal", "none, low, medium, high, xhigh, max, or a number of tokens"),
        ("gemini/gemini-x", "xhigh", "none, minimal, low, medium, high, or a number of tokens"),
        ("bedrock/amazon.nova", "none", "low, medium, high, xhigh, max"),
    ],
)
def test_an_effort_that_a_protocol_does_not_have_is_refused_before_anything_is_sent(
    model: str, effort: str, words: str
) -> None:
    settings = Settings(needs_keys=False, environment={"AWS_REGION": "r"})
    with pytest.raises(UsageError, match=f"{model}: expected a reasoning effort of {words}.*, got {effort}"):
        check_models_take([Call(model, "?", reasoning_effort=effort)], settings)
    check_models_take([Call(model, "?", reasoning_effort="low")], settings)


@pytest.mark.parametrize(
    ("model", "takes", "words"),
    [
        ("openai/gpt-4o", (), "no reasoning effort at all"),
        ("openrouter/openai/gpt-4.1-mini", (), "no reasoning effort at all"),
        ("openai/o3", ("low", "high"), "a reasoning effort of low, medium, high"),
        ("openai/gpt-5", ("minimal",), "a reasoning effort of minimal, low, medium, high"),
        ("openai/gpt-5.1", ("none", "high"), "a reasoning effort of none, low, medium, high"),
        ("openai/gpt-5.6-luna", ("none", "max"), "a reasoning effort of none, low, medium, high, xhigh, max"),
        ("openai/gpt-6.2-sol", ("low", "max"), "a reasoning effort of low, medium, high, xhigh, max"),
        ("anthropic/claude-sonnet-4-5", ("none", "2048"), "a reasoning effort of none, or a number of tokens"),
        ("anthropic/claude-opus-4-6", ("max", "2048"), "none, low, medium, high, max, or a number of tokens"),
        ("anthropic/claude-opus-4-8", ("none", "xhigh"), "a reasoning effort of none, low, medium, high, xhigh, max"),
        ("anthropic/claude-opus-5-5", ("low", "max"), "a reasoning effort of low, medium, high, xhigh, max"),
        ("gemini/gemini-3.8-flash", ("low", "1024"), "a reasoning effort of low, medium, high, or a number of tokens"),
        ("groq/openai/gpt-oss-20b", ("low",), "a reasoning effort of low, medium, high"),
        ("xai/grok-4.7", ("low",), "a reasoning effort of low, medium, high"),
    ],
)
def test_an_effort_that_a_model_does_not_take_is_refused_with_those_that_it_takes(
    model: str, takes: tuple[str, ...], words: str
) -> None:
    settings = Settings(needs_keys=False, environment={}, clock=datetime(2026, 11, 26, tzinfo=UTC).timestamp)
    check_models_take([Call(model, "?", reasoning_effort=effort) for effort in (None, *takes)], settings)
    for effort in {"minimal", "default"} - set(takes):
        with pytest.raises(UsageError) as error:
            check_models_take([Call(model, "?", reasoning_effort=effort)], settings)
        assert str(error.value).startswith(f"{model}: expected ")
        assert f"{words}, got {effort}" in str(error.value)


def test_a_configuration_says_which_efforts_a_model_takes() -> None:
    settings = Settings(models={"openai/gpt-4o": Facts(efforts=("low",))}, needs_keys=False, environment={})
    check_models_take([Call("openai/gpt-4o", "?", reasoning_effort="low")], settings)
    with pytest.raises(UsageError, match=r'of low, got high; efforts under \[models."openai/gpt-4o"\] in a --config'):
        check_models_take([Call("openai/gpt-4o", "?", reasoning_effort="high")], settings)


def test_a_line_is_found_by_effort_and_temperature_none_too() -> None:
    def line(**named: Any) -> RunLine:
        return RunLine(folder=Path(), manifest={}, options=None, id="i", **named)

    pairs = [Pair("m", temperature, effort) for temperature in (None, 0.5) for effort in ("none", "low")]
    assert line(effort="low", temperature=None).pair(pairs) == Pair("m", None, "low")
    assert line(temperature=0.5, effort="none").pair(pairs) == Pair("m", 0.5, "none")
    with pytest.raises(UsageError, match=r"--reasoning-effort is missing: give one of the run's \(none, low\)"):
        line().pair(pairs)
    with pytest.raises(UsageError, match=r"--temperature is missing: give one of the run's \(none, 0.5\)"):
        line(effort="low").pair(pairs)
    with pytest.raises(UsageError, match=r"--temperature: expected one of the run's \(0.5, 1.0\), got none"):
        line(temperature=None).pair([Pair("m", 0.5), Pair("m", 1.0)])
