"""The live display's words: what is known stands there, no line is too long, nothing is obeyed by a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.interfaces.terminal.load_lines import (
    LoadView,
    ModelView,
    Percentiles,
    plain_lines,
    screen_lines,
)

OWN = ModelView(
    model="sim/open",
    asked=50.0,
    sent=49.8,
    in_flight=12,
    ended=1_150,
    errors={"rate_limited": 10, "timeout": 2},
    latency=Percentiles(0.11, 0.19),
    first_token=Percentiles(0.045, 0.08),
)
VIEW = LoadView(
    elapsed_s=23.0, calls=1_162, models=(OWN,), of_s=60.0, spent=0.12, cap=1.0, client="its loop lags by 9 ms"
)


def texts(view: LoadView, width: int, *, is_last: bool = False) -> list[str]:
    return ["".join(piece.text for piece in line) for line in screen_lines(view, width, is_last=is_last)]


def test_a_wide_terminal_shows_all_that_is_known() -> None:
    assert texts(VIEW, 100) == [
        "━━━━━━━━━━━━━━━─────────────────────────  0:23 of 1:00  1,162 calls",
        "sim/open  asked 50/s  sent 49.8/s  12 in flight  1,150 ended",
        "  last 5 s:  latency p50 110 ms, p99 190 ms  first token p50 45.0 ms, p99 80.0 ms",
        "  errors 1.04%: rate_limited 10, timeout 2",
        "$0.12 spent of $1.00",
        "the client is the bottleneck:  its loop lags by 9 ms",
    ]


def test_a_log_has_the_same_on_a_line_of_its_own_for_each_model() -> None:
    (line,) = plain_lines(VIEW)
    assert line == (
        "0:23 of 1:00 1,162 calls | sim/open: asked 50/s, sent 49.8/s, 12 in flight, 1,150 ended | "
        "latency p50 110 ms, p99 190 ms | first token p50 45.0 ms, p99 80.0 ms | "
        "errors 1.04%: rate_limited 10, timeout 2 | $0.12 spent of $1.00 | CLIENT-BOUND: its loop lags by 9 ms"
    )
    two = LoadView(elapsed_s=23.0, calls=7, models=(OWN, OWN))
    assert [line.startswith("0:23 | sim/open: ") for line in plain_lines(two)] == [True, True]


def test_the_last_picture_tells_what_it_came_to_and_nothing_of_now() -> None:
    said = "\n".join(texts(VIEW, 100, is_last=True))
    assert "errors" in said and "spent" in said
    assert not any(word in said for word in ("asked", "sent 49", "in flight", "last 5 s", "bottleneck"))


def test_a_search_tells_its_step_and_a_drain_what_it_waits_for() -> None:
    from msgspec import structs

    own = structs.replace(OWN, step="step 3: 80/s (kept at 40/s)", asked=None)
    said = texts(LoadView(elapsed_s=5.0, calls=9, models=(own,), is_draining=True), 100)
    assert "  step 3: 80/s (kept at 40/s)" in said
    assert said[0] == "0:05  9 calls" and said[-1] == "waiting for 12 calls in flight"
    assert not any("asked" in line for line in said)


def test_the_bar_follows_the_limit_that_is_nearest() -> None:
    assert LoadView(elapsed_s=30.0, calls=10, models=(), of_s=60.0, of_calls=100).share == 0.5
    assert LoadView(elapsed_s=30.0, calls=90, models=(), of_s=60.0, of_calls=100).share == 0.9
    assert LoadView(elapsed_s=30.0, calls=10, models=(), spent=0.3, cap=0.4, of_s=60.0).share == pytest.approx(0.75)
    assert LoadView(elapsed_s=90.0, calls=10, models=(), of_s=60.0).share == 1.0
    assert LoadView(elapsed_s=90.0, calls=10, models=()).share is None


@given(st.integers(20, 200), st.text(max_size=60), st.booleans())
def test_no_line_is_longer_than_the_terminal_and_no_name_moves_the_cursor(width: int, name: str, is_last: bool) -> None:
    from msgspec import structs

    view = structs.replace(VIEW, models=(structs.replace(OWN, model=name),))
    for line in (*texts(view, width, is_last=is_last),):
        assert len(line) <= width
    assert all(line.isprintable() for line in (*texts(view, width), *plain_lines(view)))
