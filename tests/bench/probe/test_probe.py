"""A probe finds quotas it was not told: the simulated provider's own rules, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from probed_provider import MODEL, REQUESTS, Manners, ProbedProvider, probed

from millstream.bench.probe.calls import Bounds
from millstream.fixtures.provider.quotas import RULES, AccountQuota


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        *(("fixed", told) for told in (0.0, 1.0, 2.0, 0.5)),
        ("sliding", 0.0),
        *(pytest.param("sliding", told, marks=pytest.mark.long) for told in (1.0, 2.0, 0.5)),
    ],
)
def test_tokens_a_minute_are_found_from_below_whatever_headers_say(rule: Any, told: float) -> None:
    provider = ProbedProvider(AccountQuota(requests=500, tokens=150_000, rule=rule), Manners(told=told))
    result = probed(provider)
    tpm = result.lanes[MODEL].tpm
    assert tpm is not None
    assert 0.95 * 150_000 <= tpm <= 150_000
    assert result.calls < 3 * 500


@pytest.mark.parametrize(
    ("requests", "tokens"), [(350, 200_000), pytest.param(3_500, 2_000_000, marks=pytest.mark.long)]
)
def test_tokens_of_a_bucket_are_its_rate_and_not_what_it_holds(requests: int, tokens: int) -> None:
    provider = ProbedProvider(AccountQuota(requests=requests, tokens=tokens, rule="bucket", burst=0.5))
    tpm = probed(provider).lanes[MODEL].tpm
    assert tpm is not None
    assert 0.95 * tokens <= tpm <= tokens


def test_refusals_for_the_calls_in_flight_are_no_quota_a_minute() -> None:
    found = probed(ProbedProvider(AccountQuota(requests=1_000, max_in_flight=24), Manners(told=0.0))).lanes[MODEL]
    assert found.rpm is None or found.rpm <= 1_000


@pytest.mark.long
def test_a_provider_that_never_limits_is_null_and_says_how_far_it_was_tested() -> None:
    bounds = Bounds(max_calls=5_000, max_cost=100.0, requests=800, tokens_a_call=1_000, in_flight=100)
    found = probed(ProbedProvider(AccountQuota(), Manners(told=0.0)), bounds).lanes[MODEL]
    assert set(found.as_lane().values()) == {None}
    assert found.tested_rpm == 800
    assert "requests a minute: not found; at least 800, which were admitted within a minute" in found.lines()


@pytest.mark.parametrize("seed", range(12))
def test_no_probe_passes_its_caps(seed: int) -> None:
    draw = random.Random(seed)
    bounds = Bounds(max_calls=draw.randrange(1, 400), max_cost=draw.choice([0.0, 0.001, 0.01, 0.5]))
    provider = ProbedProvider(AccountQuota(requests=300, tokens=100_000, rule=RULES[seed % 3]), seed=seed)
    result = probed(provider, bounds)
    assert provider.calls == result.calls <= bounds.max_calls
    assert provider.cost == pytest.approx(result.cost)
    assert provider.cost <= bounds.max_cost
    assert "raise --max-" in result.lanes[MODEL].ended


def test_a_dead_key_ends_a_probe_in_one_line_after_one_call() -> None:
    provider = ProbedProvider(AccountQuota(requests=60), Manners(dies_after=0))
    found = probed(provider).lanes[MODEL]
    assert found.ended == f"{MODEL}: the key is refused (401): give another"
    assert provider.calls == 1


def test_what_was_found_before_a_failure_is_kept() -> None:
    whole = ProbedProvider(AccountQuota(requests=60, tokens=50_000))
    probed(whole)
    provider = ProbedProvider(AccountQuota(requests=60, tokens=50_000), Manners(dies_after=whole.calls - 1))
    found = probed(provider).lanes[MODEL]
    assert (found.rpm, found.tpm) == (60, None)
    assert found.ended


def test_a_provider_that_fails_now_and_then_ends_no_probe_and_one_that_always_fails_ends_it() -> None:
    assert probed(ProbedProvider(AccountQuota(requests=200), Manners(fails=0.05), seed=3)).lanes[MODEL].ended == ""
    provider = ProbedProvider(AccountQuota(requests=200), Manners(fails=1.0))
    assert "answers 500" in probed(provider).lanes[MODEL].ended
    assert provider.calls <= 16


@pytest.mark.parametrize("told", [1.0, 2.0, 0.5])
def test_headers_stand_beside_what_is_enforced_without_a_verdict(told: float) -> None:
    lines = probed(ProbedProvider(AccountQuota(requests=100, rule="fixed"), Manners(told=told))).lanes[MODEL].lines()
    about = next(line for line in lines if line.startswith("headers say"))
    header, least = about.split("; at least ")
    assert header == f"headers say {100 * told:,.0f} requests a minute"
    assert least.endswith(" are admitted") and 80 <= float(least.split()[0]) <= 100


@pytest.mark.parametrize("rule", RULES)
def test_the_kind_of_window_is_named_where_headers_show_it_and_never_else(rule: Any) -> None:
    quota = AccountQuota(requests=100, rule=rule)
    for told, window in ((1.0, rule), (0.0, None)):
        provider = ProbedProvider(quota, Manners(told=told, starts_at_s=11.0))
        assert probed(provider, REQUESTS).lanes[MODEL].window in (window, None)


@pytest.mark.parametrize("rule", RULES)
def test_a_limit_in_headers_is_confirmed_with_one_burst_and_one_step_above_it(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(requests=1_000, rule=rule), Manners(latency_s=0.1))
    found = probed(provider, REQUESTS).lanes[MODEL]
    assert found.rpm == 1_000
    assert provider.calls < 1_600


def test_a_burst_goes_on_in_small_steps_from_what_headers_say_is_left() -> None:
    # Of a bucket that holds a quarter of its quota a doubled burst would lose that much again.
    provider = ProbedProvider(AccountQuota(requests=1_000, rule="bucket", burst=0.25), Manners(jitter_s=0.005))
    probed(provider, REQUESTS)
    assert provider.refusals < 200


@pytest.mark.parametrize("told", [0.0, 1.0])
def test_a_bucket_that_holds_a_fifteenth_of_its_quota_is_found(told: float) -> None:
    quota = AccountQuota(requests=600, tokens=300_000, rule="bucket", burst=1 / 15)
    lane = probed(ProbedProvider(quota, Manners(told=told), seed=3)).lanes[MODEL].as_lane()
    assert 0.95 * 600 <= lane["rpm"] <= 600
    assert 0.95 * 300_000 <= lane["tpm"] <= 300_000


@pytest.mark.parametrize("made", [lambda: Bounds(0, 1.0), lambda: Bounds(1, -1.0), lambda: Bounds(1, float("nan"))])
def test_caps_that_mean_nothing_are_refused(made: Callable[[], Bounds]) -> None:
    with pytest.raises(ValueError, match="probe: max_"):
        made()
