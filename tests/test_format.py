"""Numbers as people read them."""

from __future__ import annotations

import pytest

from millstream.format import (
    by_kind,
    clock,
    command_text,
    count_text,
    decimal_text,
    dollars,
    figure_text,
    first_of,
    measured_time,
    part_of,
    percent_text,
    rate_text,
    rough_minutes,
    rough_time,
    size_text,
    span_text,
)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (0.00012, "0.00012"),
        (0.9996, "1.00"),
        (1.2345, "1.23"),
        (-12.345, "-12.3"),
        (99.96, "100"),
        (12345.6, "12,346"),
    ],
)
def test_a_figure_has_three_digits_or_all_before_the_point(number: float, shown: str) -> None:
    assert figure_text(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.0000081, "8.10 µs"),
        (0.000123, "0.123 ms"),
        (0.0123, "12.3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (61.25, "61.2 s"),
        (3600, "3,600 s"),
    ],
)
def test_a_measured_time_has_its_own_unit(seconds: float, shown: str) -> None:
    assert measured_time(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0 s"),
        (0.25, "0.25 s"),
        (12.4, "12 s"),
        (179, "179 s"),
        (200, "3 min"),
        (3_599, "1 h 0 min"),
        (7_500, "2 h 5 min"),
    ],
)  # fmt: skip
def test_a_rough_time_has_no_more_digits_than_an_estimate(seconds: float, shown: str) -> None:
    assert rough_time(seconds) == shown
    assert rough_minutes(seconds / 60) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (59.6, "1:00"), (115.2, "1:55"), (3_723, "1:02:03"), (40_000_000, "462 days")],
)
def test_a_display_that_goes_on_reads_like_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_rates_keep_the_four_digits_that_were_asked_for() -> None:
    assert [rate_text(each) for each in (0.25, 49.83, 250.5, 1234.5)] == ["0.25", "49.83", "250.5", "1,234"]


def test_money_has_cents_and_below_a_dollar_two_digits() -> None:
    amounts = (0, 1234.5, 1, 0.5, 0.0143, 0.00034, 1e-12)
    assert [dollars(each) for each in amounts] == [
        "$0.00", "$1,234.50", "$1.00", "$0.50", "$0.014", "$0.00034", "$0.00"
    ]  # fmt: skip


def test_a_sum_that_rounds_below_zero_is_no_error() -> None:
    assert [dollars(0.1 + 0.2 - 0.3), dollars(0.3 - (0.1 + 0.2)), dollars(-0.25)] == ["$0.00", "$0.00", "-$0.25"]


def test_counts_have_their_nouns() -> None:
    assert [count_text(number, "call") for number in (0, 1, 1_200)] == ["0 calls", "1 call", "1,200 calls"]
    assert count_text(2, "search", "searches") == "2 searches"
    assert by_kind({"connect": 3, "timeout": 12, "aborted": 3}) == "timeout 12, aborted 3, connect 3"


def test_a_share_that_rounds_to_nothing_is_not_written_as_none() -> None:
    assert [percent_text(share) for share in (0, 0.0004, 0.001, 0.1234, 1)] == [
        "0.0%", "below 0.1%", "0.1%", "12.3%", "100.0%"
    ]  # fmt: skip
    assert part_of(3, 1_200) == "3 of its 1,200 answers (0.2%)"


def test_a_span_whose_ends_read_the_same_is_one_number() -> None:
    assert span_text((1_200, 3_400), decimal_text) == "1,200 to 3,400"
    assert span_text((1.2, 1.3), decimal_text) == "1"
    assert decimal_text(None) == "-" and decimal_text(1.234, 2) == "1.23"


def test_sizes_have_units_that_people_read() -> None:
    assert [size_text(n) for n in (0, 1_023, 1_024, 5 << 20, 3 << 40)] == [
        "0 bytes", "1,023 bytes", "1.0 KiB", "5.0 MiB", "3,072.0 GiB"
    ]  # fmt: skip


def test_a_command_can_be_pasted_whatever_its_paths_hold() -> None:
    assert command_text("resume", "runs/a") == "millstream resume runs/a"
    # A blank, and a letter that no shell needs quoted but the standard library quotes all the same.
    assert command_text("retry", "rüns/my z") == "millstream retry 'rüns/my z'"
    assert command_text("report", "it's") == """millstream report 'it'"'"'s'"""


def test_a_long_list_is_its_first_things_and_the_number_of_the_others() -> None:
    assert first_of(["tea", "bees"], 2) == "tea, bees" and first_of([], 2) == ""
    assert first_of(range(1_203), 3, "; ") == "0; 1; 2 and 1,200 more"
