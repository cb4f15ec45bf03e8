"""Amounts and times as a reader takes them in."""

from __future__ import annotations

import pytest

from millstream.metrics.report.html_tables import amount, duration


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
def test_an_amount_has_three_digits_or_all_before_the_point(number: float, shown: str) -> None:
    assert amount(number) == shown


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
def test_a_time_is_told_in_its_own_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
