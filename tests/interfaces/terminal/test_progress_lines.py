"""Progress in words: no line too long, nothing that a terminal obeys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.attempts.money import CostBudget
from millstream.engine.events import Event
from millstream.engine.lanes.growth import Found
from millstream.interfaces.terminal.bottleneck import WaitShare
from millstream.interfaces.terminal.progress_lines import last_line, percent, plain_line, screen_lines
from millstream.interfaces.terminal.run_progress import LaneView, RunProgress, RunView


def test_a_plain_line_tells_everything_that_is_known() -> None:
    view = RunView(
        total=105_930,
        done=12_340,
        elapsed_s=15.2,
        per_s=812.4,
        average_per_s=790.0,
        in_flight=128,
        cached=3_001,
        spent=0.41,
        expected=3.519,
        left_s=115.2,
        failures={"timeout": 2},
        retries={"connect": 3, "server_error": 12},
        throttles=0,
        waits=(WaitShare("requests", 0.92), WaitShare("tokens", 0.08)),
        lanes=(),
    )
    assert plain_line(view) == (
        "12,340 of 105,930 (11.6%) | 812.4/s | 128 in flight | 3,001 from the cache | $0.41 of ~$3.52 | 1:55 left | "
        "waiting for the quota of requests 92% | failed attempts: server_error 12, connect 3 | failed calls: timeout 2"
    )
    assert last_line(view) == (
        "12,340 of 105,930 (11.6%) | in 0:15 | 790/s | 3,001 from the cache | $0.41 | "
        "failed attempts: server_error 12, connect 3 | failed calls: timeout 2"
    )


def test_a_lane_without_a_quota_says_why_it_is_not_faster() -> None:
    def lane(model: str, found: tuple[Found, float]) -> LaneView:
        return LaneView(model, 9, 1.0, 3, 128, (), "", found=found)

    refused, slow = lane("a/refused", ("refused", 12.34)), lane("a/slow", ("slow", 96.0))
    one = structs.replace(a_view(), lanes=(refused,))
    assert " | 12.3/s, the provider refuses more" in plain_line(one)
    both = structs.replace(one, lanes=(refused, slow, lane("a/growing", ("", 64.0))))
    text = plain_line(both)
    assert "a/refused: 12.3/s, the provider refuses more | a/slow: answers get slower beyond 96 in flight" in text
    assert "growing" not in text and "refuses more" not in last_line(both)


def test_only_the_whole_is_a_hundred_percent() -> None:
    assert percent(a_view(done=105_929)) == "99.9%"
    assert percent(a_view(done=105_930)) == "100%"


def a_view(
    *, total: int = 105_930, done: int = 12_340, failures: dict[str, int] | None = None, lanes: int = 1, item: str = ""
) -> RunView:
    waits = (WaitShare("requests", 0.5), WaitShare("concurrency", 0.3), WaitShare("CPU", 0.2))
    return RunView(
        total=total,
        done=done,
        elapsed_s=123.0,
        per_s=1_234.5,
        average_per_s=1_000.1,
        in_flight=100_000,
        cached=1_234_567,
        spent=1_234.56,
        expected=98_765.43,
        left_s=123_456.0,
        failures=failures or {},
        retries={"server_error": 4_321},
        throttles=1_234,
        waits=waits,
        lanes=tuple(
            LaneView(
                f"provider/a-rather-long-model-name-{number}", 9, 1.0, 3, 128, waits, "budget" if number % 2 else ""
            )
            for number in range(lanes)
        ),
        page_failures={"rejected": 1_234_567, "rate_limited": 98} if item else {},
        item=item,
    )


@given(
    width=st.integers(20, 200),
    total=st.integers(0, 10**9),
    done=st.integers(0, 10**9),
    lanes=st.integers(0, 12),
    item=st.sampled_from(["", "turn"]),
    failures=st.dictionaries(
        st.sampled_from(["timeout", "server_error", "rate_limited", "empty"]), st.integers(1, 10**7)
    ),
)
def test_no_line_is_longer_than_the_terminal_is_wide(
    width: int, total: int, done: int, lanes: int, item: str, failures: dict[str, int]
) -> None:
    view = a_view(total=total, done=done, failures=failures, lanes=lanes, item=item)
    for line in screen_lines(view, width):
        text = "".join(piece.text for piece in line)
        assert len(text) <= width
        assert text.isprintable()


def test_forty_columns_lose_nothing_of_one_lane() -> None:
    view = a_view(failures={"timeout": 2})
    texts = ["".join(piece.text for piece in line) for line in screen_lines(view, 39)]
    quota = "waiting for the quota of requests 50%"
    for told in ("12,340 of 105,930", "11.6%", "1,234/s", "100,000 in flight", quota, "timeout 2"):
        assert any(told in text for text in texts), told


def test_the_last_picture_speaks_of_nothing_to_come() -> None:
    view = a_view(failures={"timeout": 2})
    text = "\n".join("".join(piece.text for piece in line) for line in screen_lines(view, 200, is_last=True))
    assert "12,340 of 105,930" in text and "timeout 2" in text and "in 2:03" in text
    assert not any(gone in text for gone in ("left", "waiting", "in flight"))


def test_lanes_are_told_apart_by_the_end_of_their_names() -> None:
    texts = ["".join(piece.text for piece in line) for line in screen_lines(a_view(lanes=3), 39)]
    assert [text.split()[0] for text in texts if text.startswith("…")] == [
        f"…model-name-{number}" for number in range(3)
    ]


def test_a_models_name_can_not_move_the_cursor() -> None:
    events = [Event("answered", "evil/\x1b[2J\u202e\r\nname", 1.0, "ok"), Event("answered", "b/c", 1.0, "ok")]
    headway = RunProgress(2, 0, {}, CostBudget(), 0.0)
    for event in events:
        headway.hear(event)
    for line in screen_lines(headway.look(1.0, 0.0, 0.0), 80):
        assert all(piece.text.isprintable() and "\u202e" not in piece.text for piece in line)
