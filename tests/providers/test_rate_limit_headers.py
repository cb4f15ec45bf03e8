"""Headers about quotas, as each provider writes them, become limits; what is not understood says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.limits import DAY_S, Limit, Quota, quota_of
from millstream.providers.transport.rate_limit_headers import is_quota_name, limits_of

NOW = 1_763_700_000.0
HOUR_S, MONTH_S = 3_600.0, 30 * DAY_S

# provider: headers, and the limits they tell
DIALECTS: dict[str, tuple[dict[str, str], set[Limit]]] = {
    "openai": (
        {
            "x-ratelimit-limit-requests": "5000",
            "x-ratelimit-remaining-requests": "4999",
            "x-ratelimit-reset-requests": "12ms",
            "x-ratelimit-limit-tokens": "160000",
            "x-ratelimit-remaining-tokens": "159976",
            "x-ratelimit-reset-tokens": "6m0s",
            "x-ratelimit-limit-tokens_usage_based": "7",
        },
        {
            Limit("requests", 60.0, 5_000.0, 4_999.0, 0.012),
            # Six minutes until it is whole: no limit of a minute.
            Limit("tokens", HOUR_S, 160_000.0, 159_976.0, 360.0),
        },
    ),
    "openai free": (
        {
            "x-ratelimit-limit-requests": "200",
            "x-ratelimit-remaining-requests": "199",
            "x-ratelimit-reset-requests": "7m12s",
        },
        {Limit("requests", DAY_S, 200.0, 199.0, 432.0)},
    ),
    "groq": (
        {
            "x-ratelimit-limit-requests": "14400",
            "x-ratelimit-remaining-requests": "14399",
            "x-ratelimit-reset-requests": "6s",
            "x-ratelimit-limit-tokens": "18000",
            "x-ratelimit-remaining-tokens": "17997",
            "x-ratelimit-reset-tokens": "7.66s",
        },
        {Limit("requests", DAY_S, 14_400.0, 14_399.0, 6.0), Limit("tokens", 60.0, 18_000.0, 17_997.0, 7.66)},
    ),
    "anthropic": (
        {
            "date": "Thu, 21 Aug 2025 12:41:00 GMT",
            "anthropic-ratelimit-requests-limit": "1000",
            "anthropic-ratelimit-requests-remaining": "999",
            "anthropic-ratelimit-requests-reset": "2025-08-21T12:40:59Z",
            "anthropic-ratelimit-input-tokens-limit": "80000",
            "anthropic-ratelimit-input-tokens-remaining": "79000",
            "anthropic-ratelimit-input-tokens-reset": "2025-08-21T14:41:01+02:00",
            "anthropic-ratelimit-output-tokens-limit": "16000",
            "anthropic-ratelimit-output-tokens-remaining": "0",
            "anthropic-ratelimit-output-tokens-reset": "2025-08-21T12:41:30.5Z",
            "anthropic-ratelimit-tokens-limit": "96000",
            "anthropic-ratelimit-tokens-remaining": "95000",
            "anthropic-ratelimit-tokens-reset": "2025-08-21T12:41:01Z",
            "anthropic-ratelimit-unified-5h-reset": "1755780000",
            "anthropic-priority-input-tokens-limit": "10",
        },
        {
            Limit("requests", 60.0, 1_000.0, 999.0, 0.0),
            Limit("input", 60.0, 80_000.0, 79_000.0, 1.0),
            Limit("output", 60.0, 16_000.0, 0.0, 30.5),
            Limit("tokens", 60.0, 96_000.0, 95_000.0, 1.0),
        },
    ),
    "xai": (
        {"x-ratelimit-limit-requests": "480", "x-ratelimit-remaining-requests": "479"},
        {Limit("requests", 60.0, 480.0, 479.0)},
    ),
    "together": (
        {
            "x-ratelimit-limit": "10",
            "x-ratelimit-remaining": "9",
            "x-ratelimit-reset": "1",
            "x-tokenlimit-limit": "3000",
            "x-tokenlimit-remaining": "2990",
            "x-ratelimit-limit-dynamic": "99",
        },
        {Limit("requests", 1.0, 10.0, 9.0, 1.0), Limit("tokens", 1.0, 3_000.0, 2_990.0)},
    ),
    "fireworks": (
        {
            "x-ratelimit-limit-requests": "6000",
            "x-ratelimit-limit-tokens-prompt": "60000",
            "x-ratelimit-remaining-tokens-prompt": "59000",
            "x-ratelimit-limit-tokens-generated": "600",
            "x-ratelimit-limit-tokens-cache-adjusted-prompt": "15000",
            "x-ratelimit-over-limit": "no",
        },
        {
            Limit("requests", 60.0, 6_000.0),
            Limit("input", 60.0, 3_600_000.0, 59_000.0),
            Limit("output", 60.0, 36_000.0),
        },
    ),
    "mistral": (
        {
            "x-ratelimit-limit-req-minute": "720",
            "x-ratelimit-remaining-req-minute": "717",
            "x-ratelimit-limit-tokens-minute": "5000000",
            "x-ratelimit-limit-tokens-month": "10000000000",
            "x-ratelimit-tokens-query-cost": "52",
        },
        {
            Limit("requests", 60.0, 720.0, 717.0),
            Limit("tokens", 60.0, 5_000_000.0),
            Limit("tokens", MONTH_S, 10_000_000_000.0),
        },
    ),
    "mistral as it was": (
        {
            "x-ratelimitbysize-limit-minute": "500000",
            "x-ratelimitbysize-remaining-minute": "499900",
            "ratelimitbysize-reset": "41",
        },
        {Limit("tokens", 60.0, 500_000.0, 499_900.0), Limit("tokens", 60.0, None, None, 41.0)},
    ),
    "cerebras": (
        {
            "x-ratelimit-limit-requests-day": "14400",
            "x-ratelimit-remaining-requests-day": "14000",
            "x-ratelimit-reset-requests-day": "33011.382867",
            "x-ratelimit-limit-tokens-minute": "60000",
        },
        {Limit("requests", DAY_S, 14_400.0, 14_000.0, 33_011.382867), Limit("tokens", 60.0, 60_000.0)},
    ),
    "azure refusing": (
        {"x-rate-limit-reset-tokens": "55", "x-ratelimit-remaining-requests": "79"},
        {Limit("tokens", 60.0, None, None, 55.0)},
    ),
    "azure for ten seconds": (
        {"x-ratelimit-limit-requests": "50", "x-ratelimit-renewalperiod-requests": "10"},
        {Limit("requests", 10.0, 50.0)},
    ),
    "azure without any": (
        {"x-ratelimit-limit-tokens": "-1", "x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "0"},
        set(),
    ),
    "openrouter": (
        {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1763700030000"},
        {Limit("requests", 60.0, 20.0, 0.0, 30.0)},
    ),
    "brave": (
        {
            "x-ratelimit-limit": "1, 15000",
            "x-ratelimit-policy": "1;w=1, 15000;w=2592000",
            "x-ratelimit-remaining": "1, 1000",
            "x-ratelimit-reset": "1, 1419704",
        },
        {Limit("requests", 1.0, 1.0, 1.0, 1.0), Limit("requests", MONTH_S, 15_000.0, 1_000.0, 1_419_704.0)},
    ),
    "brave without a month's limit": (
        {"x-ratelimit-limit": "20, 0", "x-ratelimit-remaining": "19, 0", "x-ratelimit-reset": "1, 1419704"},
        {Limit("requests", 1.0, 20.0, 19.0, 1.0)},
    ),
    "a list that repeats the nearest": (
        {"ratelimit-limit": "100, 100;w=60, 5000;w=3600", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
        {Limit("requests", 60.0, 100.0, 50.0, 30.0), Limit("requests", HOUR_S, 5_000.0)},
    ),
}


@pytest.mark.parametrize("case", DIALECTS)
def test_each_provider_is_understood_in_its_own_words(case: str) -> None:
    headers, limits = DIALECTS[case]
    assert set(limits_of(headers, NOW, case)) == limits
    assert all(is_quota_name(name) for name in headers if name not in ("date", "anthropic-priority-input-tokens-limit"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3_723.5),
        ("1d", DAY_S),
        ("0s", 0.0),
        ("59.7", 59.7),
        ("0", 0.0),
        (str(int(NOW) + 90), 90.0),
        (str(int(NOW * 1000) + 1_500), 1.5),
        ("2025-11-21T04:40:10Z", 10.0),
        ("Fri, 21 Nov 2025 04:40:07 GMT", 7.0),
        ("2020-01-01T00:00:00Z", 0.0),
    ],
)
def test_when_it_is_whole_again_is_read_in_every_form(text: str, seconds: float) -> None:
    (limit,) = limits_of({"x-ratelimit-reset-tokens": text}, NOW)
    assert limit.reset_s == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize("text", ["", "soon", "1 minute", "-", "s", "2025-11-21T04:40:10", "nan", "inf", "m5", "1e400"])
def test_a_time_that_can_not_be_read_tells_nothing(text: str) -> None:
    headers = {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": text}
    assert limits_of(headers, NOW) == (Limit("requests", 60.0, 60.0),)


def test_a_date_is_held_against_the_answers_own_clock() -> None:
    headers = {"anthropic-ratelimit-requests-reset": "2025-08-21T12:41:30Z", "date": "Thu, 21 Aug 2025 12:41:00 GMT"}
    assert limits_of(headers, NOW) == (Limit("requests", 60.0, None, None, 30.0),)


def test_what_a_day_may_hold_is_no_pace_even_where_the_figures_alone_tell_it() -> None:
    headers = {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-reset-requests": "2m59.56s",
    }
    assert quota_of(limits_of(headers, NOW)) == Quota()


PREFIXES = ["x", "anthropic", "ratelimit", "rate", "limit", "tokenlimit", "ratelimitbysize"]
ROLES = ["limit", "remaining", "reset", "policy", "renewalperiod"]
AMOUNTS = ["requests", "req", "tokens", "input", "output", "prompt", "generated", "minute", "day", "month"]
NAMES = st.lists(st.sampled_from(PREFIXES + ROLES + AMOUNTS), min_size=1, max_size=7).map("-".join)
VALUES = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"[-0-9.,;w= dhms:TZ+e]{0,30}", fullmatch=True),
    st.floats().map(str),
    st.integers().map(str),
)


@given(st.dictionaries(NAMES, VALUES, max_size=12), st.sampled_from(["", "groq"]))
def test_no_header_is_ever_an_error_and_no_limit_is_ever_absurd(headers: dict[str, str], provider: str) -> None:
    for limit in limits_of(headers, NOW, provider):
        assert limit.window_s > 0
        assert limit.limit is None or 0 < limit.limit < 1e18
        assert limit.remaining is None or limit.remaining >= 0
        assert limit.reset_s is None or 0 <= limit.reset_s < 1e15
        assert 0 <= limit.wait_s < 1e15
    quota_of(limits_of(headers, NOW, provider))


NO_NUMBERS = ["\uff11\uff10\uff10", "\u0661\u0660\u0660", "1_000", "0x64", "1e", "1.2.3", "", "inf", "nan"]


@pytest.mark.parametrize("number", NO_NUMBERS)
def test_a_number_is_written_in_ascii_digits(number: str) -> None:
    assert not limits_of({"x-ratelimit-limit-requests": number, "x-ratelimit-reset-requests": number + "s"}, NOW)


def test_a_number_with_a_sign_a_point_or_an_exponent_is_one() -> None:
    for number in ("100", " 100 ", "+100", "100.0", "1e2", "100."):
        (limit,) = limits_of({"x-ratelimit-limit-requests": number}, NOW)
        assert limit.limit == 100.0
