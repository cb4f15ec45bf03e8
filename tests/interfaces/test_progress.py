"""Progress: what it counts, what it says a run waits for, and that it leaves logs and terminals readable."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Bench, ScriptedProvider, engine_over, prompts
from virtual_time import VirtualLoop

from millstream.engine.endpoint import Fault
from millstream.engine.events import Event
from millstream.engine.lane import Lane
from millstream.engine.money import Price, Purse
from millstream.engine.run import run_calls
from millstream.interfaces.bottleneck import Bottleneck, Share, Span, shares
from millstream.interfaces.headway import Headway, LaneView, View
from millstream.interfaces.progress import Progress, Style
from millstream.interfaces.progress_lines import duration, last_line, percent, plain_line, screen_lines

MODEL = "script/m"
ANSI = re.compile(r"\x1b")


T = TypeVar("T")


class MovingLoop(VirtualLoop):
    """A clock that moves on when it is read, as real ones do: a wait that rounds to nothing ends all the same."""

    def time(self) -> float:
        self.now += 1e-9
        return self.now


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=MovingLoop) as runner:
        return runner.run(main)


def idle_cpu() -> float:
    return 0.0


def lines_of(
    tmp_path: Path,
    lane: Lane,
    calls: int,
    provider: ScriptedProvider | None = None,
    *,
    total: int | None = None,
    already: int = 0,
    price: Price | None = None,
    style: Style = "auto",
    cpu: Callable[[asyncio.AbstractEventLoop], float] | None = None,
) -> list[tuple[float, str]]:
    """Run `calls` calls in virtual time; the progress lines with the second at which each was written."""
    written: list[tuple[float, str]] = []

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            if text.strip():
                written.append((asyncio.get_running_loop().time(), text.strip()))
            return len(text)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        provider_or_default = provider or ScriptedProvider()
        async with engine_over({lane.model: provider_or_default}, tmp_path / "cache", lane, price=price) as bench:
            cpu_s = idle_cpu if cpu is None else lambda: cpu(loop)
            shown = Progress(bench, total or calls, already, stream=Log(), style=style, cpu_s=cpu_s)
            with shown:
                async for _ in run_calls(bench.scheduler, prompts(calls, lane.model)):
                    pass

    run_virtually(main())
    return written


def waited_for(line: str) -> tuple[str, int]:
    found = re.search(r"waiting for ([\w-]+) (\d+)%", line)
    assert found is not None, line
    return found[1], int(found[2])


# What a log gets


def test_a_log_gets_a_line_after_two_seconds_then_every_ten_and_one_at_the_end(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 25, ScriptedProvider(latency_s=1.0))
    assert [at for at, _ in written] == pytest.approx([2.0, 12.0, 22.0, 26.0], abs=1.0)
    assert written[-1][1].startswith("25 of 25 (100%) | in 0:2")


def test_a_short_run_gets_its_last_line_alone(tmp_path: Path) -> None:
    ((_, line),) = lines_of(tmp_path, Lane(MODEL, concurrency=4), 8)
    assert re.fullmatch(r"8 of 8 \(100%\) \| in 0:00 \| (3\d|40)/s \| 0 cached", line)


def test_a_log_gets_no_control_character(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 50)
    assert len(written) == 2
    assert [line for _, line in written if not line.isprintable()] == []


def test_style_none_writes_nothing_and_listens_to_nothing(tmp_path: Path) -> None:
    assert lines_of(tmp_path, Lane(MODEL, concurrency=1), 50, style="none") == []


def test_a_plain_line_tells_everything_that_is_known() -> None:
    view = View(
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
        retries=0,
        throttles=0,
        waits=(Share("requests", 0.92), Share("tokens", 0.08)),
        lanes=(),
    )
    assert plain_line(view) == (
        "12,340 of 105,930 (11.6%) | 812/s | 128 in flight | 3,001 cached | $0.41 of ~$3.52 | 1:55 left | "
        "waiting for requests 92% | failed: timeout 2"
    )
    assert last_line(view) == ("12,340 of 105,930 (11.6%) | in 0:15 | 790/s | 3,001 cached | $0.41 | failed: timeout 2")


def test_what_was_done_before_counts_as_done_but_not_for_the_rate(tmp_path: Path) -> None:
    slow = ScriptedProvider(latency_s=1.0)
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 10, slow, total=1_100, already=1_090)
    assert written[0][1].startswith("1,091 of 1,100 (99.1%) | 0.5/s | 1 in flight")
    assert "| 0:18 left |" in written[0][1]
    assert written[-1][1].startswith("1,100 of 1,100 (100%) | in 0:1")


def test_answers_from_the_cache_are_counted_apart(tmp_path: Path) -> None:
    lines_of(tmp_path, Lane(MODEL, concurrency=4), 20)
    ((at, line),) = lines_of(tmp_path, Lane(MODEL, concurrency=4), 24)
    assert "24 of 24 (100%)" in line and "20 cached" in line
    assert at == pytest.approx(0.1, abs=0.01)


def test_the_expected_cost_is_that_of_the_whole(tmp_path: Path) -> None:
    price = Price(0.0, 100_000.0)  # ten cents an answer, since the script's answers have one token
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 100, price=price)
    told = re.match(r"(\d+) of 100 .* \| \$(\d\.\d0) of ~\$10\.00 \|", written[0][1])
    assert told is not None and float(told[2]) == int(told[1]) / 10
    assert written[-1][1].endswith("| $10.00")


def test_money_is_not_mentioned_where_no_price_is_known(tmp_path: Path) -> None:
    assert all("$" not in line for _, line in lines_of(tmp_path, Lane(MODEL, concurrency=1), 50))


def test_failures_are_told_by_kind_the_most_frequent_first(tmp_path: Path) -> None:
    def script(prompt: str, _: float) -> Fault | None:
        number = int(prompt.split()[1])
        if number % 10 == 0:
            return Fault("rejected", "no", "never")
        return Fault("too_large", "no", "never") if number % 25 == 7 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=4), 100, ScriptedProvider(script))
    assert written[-1][1].endswith("| failed: rejected 10, too_large 4")
    assert written[-1][1].startswith("100 of 100 (100%)")


def test_retries_are_told_and_a_call_that_succeeds_in_the_end_is_no_failure(tmp_path: Path) -> None:
    seen: set[str] = set()

    def once(prompt: str, _: float) -> Fault | None:
        if prompt in seen or not prompt.endswith("7"):
            return None
        seen.add(prompt)
        return Fault("server_error", "busy", "retry")

    written = lines_of(tmp_path, Lane(MODEL, concurrency=4), 40, ScriptedProvider(once))
    assert written[-1][1].startswith("40 of 40 (100%)")
    assert written[-1][1].endswith("| retried 4")


# What a run waits for


def test_a_lane_at_its_request_quota_waits_for_requests_and_the_quota_tells_the_time_left(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, rpm=600, concurrency=16), 300)
    reason, share = waited_for(written[1][1])
    assert reason == "requests" and share >= 85
    left = re.search(r"(\d+):(\d+) left", written[1][1])
    assert left is not None
    assert int(left[1]) * 60 + int(left[2]) == pytest.approx(written[-1][0] - written[1][0], abs=1.5)


def test_a_lane_at_its_token_quota_waits_for_tokens(tmp_path: Path) -> None:
    # Some 5 tokens a call once the estimate has learned: 200 calls a minute.
    written = lines_of(tmp_path, Lane(MODEL, tpm=1_000, concurrency=4), 300)
    reasons = [waited_for(line) for _, line in written[1:-1]]
    assert len(reasons) > 5 and all(reason == "tokens" and share > 80 for reason, share in reasons)


def test_a_slow_provider_behind_full_slots_is_waiting_for_concurrency(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=2), 40, ScriptedProvider(latency_s=1.0))
    reason, share = waited_for(written[1][1])
    assert reason == "concurrency" and share > 95


def test_a_pause_is_told_while_it_lasts(tmp_path: Path) -> None:
    def script(_: str, at: float) -> Fault | None:
        return Fault("rate_limited", "wait", "throttle", retry_after_s=60.0) if 5 < at < 6 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 100, ScriptedProvider(script))
    paused = [line for at, line in written if 20 < at < 60]
    assert len(paused) == 4
    assert all(waited_for(line) == ("pause", 100) and "throttled 1" in line for line in paused)


def test_a_lone_back_off_is_told_while_it_lasts(tmp_path: Path) -> None:
    def script(_: str, at: float) -> Fault | None:
        return Fault("server_error", "busy", "retry") if at < 60 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 3, ScriptedProvider(script))
    reasons = [waited_for(line)[0] for _, line in written[2:4]]
    assert reasons == ["retry", "retry"]


def test_back_offs_of_many_callers_are_retry_by_the_share_of_callers(tmp_path: Path) -> None:
    bottleneck = Bottleneck(40)
    for _ in range(40):
        bottleneck.add(Span(0.25, {}, "", 1.25, 10, 10, is_cpu_full=False))
    assert shares([bottleneck.seconds()]) == (Share("concurrency", 0.5), Share("retry", 0.5))


def test_a_process_that_has_used_up_its_core_waits_for_the_cpu(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=2), 200, cpu=lambda loop: 0.97 * loop.time())
    assert waited_for(written[0][1]) == ("CPU", 100)


def test_a_run_that_lives_on_its_cache_waits_for_the_cpu(tmp_path: Path) -> None:
    async def main() -> View:
        async with engine_over({MODEL: ScriptedProvider()}, tmp_path / "cache") as bench:
            bench.lane(MODEL)
            headway = Headway(100, 0, bench.scheduler.routes, bench.purse, 0.0)
            for second in range(5):
                headway.hear(Event("cached", MODEL))
                view = headway.look(second + 1.0, 0.5, 0.0)
            return view

    assert run_virtually(main()).waits == (Share("CPU", 1.0),)


def test_a_few_last_calls_are_waited_for_as_answers(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=8), 1, ScriptedProvider(latency_s=15.0))
    assert waited_for(written[1][1]) == ("answers", 100)


def test_a_wait_under_way_is_counted_once_when_it_ends() -> None:
    bottleneck = Bottleneck(40)
    for _ in range(8):
        bottleneck.add(Span(0.25, {}, "pause", 0.0, 1, 1, is_cpu_full=False))
    assert bottleneck.seconds() == pytest.approx({"pause": 2.0})
    bottleneck.add(Span(0.25, {"pause": 2.1}, "", 0.0, 1, 1, is_cpu_full=False))
    assert bottleneck.seconds() == pytest.approx({"pause": 2.1, "concurrency": 0.15})


@given(
    st.lists(
        st.builds(
            Span,
            length_s=st.floats(0, 5),
            held_s=st.dictionaries(st.sampled_from(["requests", "tokens", "pause"]), st.floats(0, 100)),
            holding=st.sampled_from(["", "requests", "tokens", "pause", "breaker"]),
            retry_s=st.floats(0, 1000),
            in_flight=st.integers(0, 8),
            concurrency=st.integers(1, 8),
            is_cpu_full=st.booleans(),
            is_only_retrying=st.booleans(),
        ),
        max_size=60,
    )
)
def test_no_more_time_is_given_away_than_passed(spans: list[Span]) -> None:
    bottleneck = Bottleneck(10)
    for span in spans:
        bottleneck.add(span)
    seconds = bottleneck.seconds()
    assert all(one >= 0 for one in seconds.values())
    assert sum(seconds.values()) <= sum(span.length_s for span in spans[-10:]) + 1e-6


def test_several_lanes_are_told_one_by_one(tmp_path: Path) -> None:
    models = [f"script/m{number}" for number in range(11)]

    async def main() -> View:
        providers = {model: ScriptedProvider() for model in models}
        async with engine_over(providers, tmp_path / "cache") as bench:
            return await _view_of_all(bench, models)

    view = run_virtually(main())
    assert [lane.model for lane in view.lanes] == models
    texts = ["".join(piece.text for piece in line) for line in screen_lines(view, 100)]
    assert [text.split()[0] for text in texts if text.startswith("script/")] == models[:8]
    assert texts[-1] == "and 3 more lanes"


async def _view_of_all(bench: Bench, models: list[str]) -> View:
    headway = Headway(100, 0, bench.scheduler.routes, bench.purse, 0.0)
    bench.events.subscribe(headway.hear)
    for model in models:
        async for _ in run_calls(bench.scheduler, prompts(3, model)):
            pass
    return headway.look(10.0, 0.0, 0.0)


def test_a_call_that_failed_unsent_is_done_and_never_was_in_flight() -> None:
    headway = Headway(3, 0, {}, Purse(), 0.0)
    for event in (Event("unsent", MODEL, detail="not_cached"), Event("sent", MODEL), Event("sent", MODEL)):
        headway.hear(event)
    view = headway.look(1.0, 0.0, 0.0)
    assert (view.done, view.in_flight, view.failures) == (1, 2, {"not_cached": 1})


def test_cancelled_calls_are_not_in_flight_for_ever(tmp_path: Path) -> None:
    async def main() -> View:
        async with engine_over({MODEL: ScriptedProvider(latency_s=50.0)}, tmp_path / "cache") as bench:
            headway = Headway(10, 0, bench.scheduler.routes, bench.purse, 0.0)
            bench.events.subscribe(headway.hear)
            asking = [asyncio.create_task(bench.scheduler.ask(call)) for call in prompts(5)]
            await asyncio.sleep(1)
            assert headway.look(1.0, 0.0, 0.0).in_flight == 5
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            return headway.look(2.0, 0.0, 0.0)

    assert run_virtually(main()).in_flight == 0


# Words


def test_only_the_whole_is_a_hundred_percent() -> None:
    assert percent(a_view(done=105_929)) == "99.9%"
    assert percent(a_view(done=105_930)) == "100%"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0:00"), (59.6, "1:00"), (115.2, "1:55"), (3_723, "1:02:03"), (40_000_000, "462 days")],
)
def test_durations_read_like_a_clock(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def a_view(*, total: int = 105_930, done: int = 12_340, failures: dict[str, int] | None = None, lanes: int = 1) -> View:
    waits = (Share("requests", 0.5), Share("concurrency", 0.3), Share("CPU", 0.2))
    return View(
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
        retries=4_321,
        throttles=1_234,
        waits=waits,
        lanes=tuple(
            LaneView(
                f"provider/a-rather-long-model-name-{number}", 9, 1.0, 3, 128, waits, "budget" if number % 2 else ""
            )
            for number in range(lanes)
        ),
    )


@given(
    width=st.integers(20, 200),
    total=st.integers(0, 10**9),
    done=st.integers(0, 10**9),
    lanes=st.integers(0, 12),
    failures=st.dictionaries(
        st.sampled_from(["timeout", "server_error", "rate_limited", "empty"]), st.integers(1, 10**7)
    ),
)
def test_no_line_is_longer_than_the_terminal_is_wide(
    width: int, total: int, done: int, lanes: int, failures: dict[str, int]
) -> None:
    view = a_view(total=total, done=done, failures=failures, lanes=lanes)
    for line in screen_lines(view, width):
        text = "".join(piece.text for piece in line)
        assert len(text) <= width
        assert text.isprintable()


def test_forty_columns_lose_nothing_of_one_lane() -> None:
    view = a_view(failures={"timeout": 2})
    texts = ["".join(piece.text for piece in line) for line in screen_lines(view, 39)]
    for told in ("12,340 of 105,930", "11.6%", "1,234/s", "100,000 in flight", "waiting for requests 50%", "timeout 2"):
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
    headway = Headway(2, 0, {}, Purse(), 0.0)
    for event in events:
        headway.hear(event)
    for line in screen_lines(headway.look(1.0, 0.0, 0.0), 80):
        assert all(piece.text.isprintable() and "\u202e" not in piece.text for piece in line)


# A terminal, in a process of its own

PROGRAM = """
import asyncio, sys
from pathlib import Path
from millstream.engine.call import Call
from millstream.engine.run import run_calls
from millstream.interfaces.progress import Progress
from scripted import ScriptedProvider, engine_over, prompts

async def main(folder, end):
    async with engine_over({"script/m": ScriptedProvider(latency_s=0.02)}, Path(folder)) as bench:
        with Progress(bench, 400, 0, stream=sys.stderr):
            number = 0
            async for outcome in run_calls(bench.scheduler, prompts(400)):
                number += 1
                if number == 100:
                    print("ready", flush=True)
                if number == 150 and end == "raise":
                    raise RuntimeError("on purpose")
                if number == 150 and end == "print":
                    print("said beside", file=sys.stderr)

asyncio.run(main(*sys.argv[1:]))
"""


def on_a_terminal(
    folder: Path, end: str, environment: dict[str, str], kill: signal.Signals | None = None
) -> tuple[int, str]:
    """What a terminal of 40 columns gets from the program; exit code and text."""
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    support = Path(__file__).parent.parent / "support"
    paths = os.pathsep.join((str(support), *sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), end],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**inherited, "TERM": "xterm-256color", "COLUMNS": "40", "LINES": "20", "PYTHONPATH": paths, **environment},
    )
    os.close(theirs)
    if kill is not None:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(kill)
    got = b""
    while True:
        try:
            chunk = os.read(ours, 65_536)
        except OSError:  # how Linux says that the other side has closed
            break
        if not chunk:
            break
        got += chunk
    os.close(ours)
    code = process.wait(timeout=30)
    if process.stdout is not None:
        process.stdout.close()
    return code, got.decode()


def is_cursor_shown(text: str) -> bool:
    return text.rfind("\x1b[?25h") >= text.rfind("\x1b[?25l")


def test_a_terminal_ends_with_the_whole_on_it_and_its_cursor_shown(tmp_path: Path) -> None:
    code, text = on_a_terminal(tmp_path, "whole", {})
    assert code == 0
    assert "400 of 400" in text and "100%" in text
    assert "\x1b[1;32m" in text or "\x1b[32m" in text
    assert is_cursor_shown(text) and text.endswith(("\n", "\x1b[?25h"))


def test_an_exception_leaves_the_terminal_clean(tmp_path: Path) -> None:
    code, text = on_a_terminal(tmp_path, "raise", {})
    assert code == 1
    before, _, after = text.partition("Traceback")
    assert is_cursor_shown(before)
    assert "on purpose" in after and not ANSI.search(after)


@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_killed_process_leaves_the_cursor_shown(tmp_path: Path, kill: signal.Signals) -> None:
    code, text = on_a_terminal(tmp_path, "whole", {}, kill)
    assert code == -kill
    assert "\x1b[" in text
    assert is_cursor_shown(text)


def test_what_others_print_to_stderr_stays_readable(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "print", {})
    assert "said beside\r\n" in text


def test_no_color_means_no_colour(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "whole", {"NO_COLOR": "1"})
    assert "400 of 400" in text
    assert re.findall(r"\x1b\[[\d;]*3[0-9][\d;]*m|\x1b\[[\d;]*9[0-7]m", text) == []


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    _, text = on_a_terminal(tmp_path, "whole", {"TERM": "dumb"})
    assert not ANSI.search(text)
    assert "400 of 400 (100%) | in 0:0" in text


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    code, text = on_a_terminal(tmp_path, "whole", {"PYTHONIOENCODING": "ascii"})
    assert code == 0
    assert "400 of 400" in text and text.isascii()
