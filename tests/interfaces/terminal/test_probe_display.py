"""What a person sees of a probe while it goes on."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest
from msgspec import structs
from virtual_time import run_virtually

from millstream.bench.probe.answers import Answer
from millstream.interfaces.terminal.probe_display import ProbeDisplay, round_line

ADMITTED, REFUSED = Answer("admitted", 20), Answer("refused", retry_after_s=23.4)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(*answers: Answer, size: int = 1) -> list[Answer]:
    return [structs.replace(answer, size=size, done_s=1.0) for answer in answers]


@pytest.mark.parametrize(
    ("answers", "size", "unsent", "line"),
    [
        ([ADMITTED], 1, 0, "1 call: admitted"),
        ([REFUSED], 1, 0, "1 call: refused, told to wait 23.4 s"),
        ([ADMITTED] * 40, 1, 0, "a burst of 40: 40 admitted"),
        (
            [ADMITTED] * 2 + [REFUSED],
            1,
            4,
            "a burst of 7: 2 admitted, 1 refused, 4 not sent any more, told to wait 23.4 s",
        ),
        ([ADMITTED] * 2, 12_000, 0, "a burst of 2 of 12,000 tokens each: 2 admitted"),
        ([Answer("failed", detail="timeout: 120 s")], 1, 0, "1 call: failed, timeout: 120 s"),
    ],
)
def test_a_round_is_one_line(answers: list[Answer], size: int, unsent: int, line: str) -> None:
    assert round_line(seen(*answers, size=size), unsent) == line


def shown(stream: io.StringIO, steps: Callable[[ProbeDisplay], None], seconds: float = 0.0) -> str:
    async def main() -> str:
        display = ProbeDisplay(stream, lambda: (12, 0.00345))
        display.begins("lab/m")
        steps(display)
        await asyncio.sleep(seconds)
        text = stream.getvalue()
        display.close()
        await asyncio.sleep(10)
        assert stream.getvalue() in (text, f"{text}\r\x1b[J"), "it goes on after its end"
        return text

    return run_virtually(main())


def test_a_log_has_a_line_for_each_thing_and_none_for_a_moment() -> None:
    def steps(display: ProbeDisplay) -> None:
        display.got("lab/m", seen(ADMITTED, ADMITTED), 0)
        display.waits("lab/m", 0.4)
        display.waits("lab/m", 23.4)

    assert shown(io.StringIO(), steps).splitlines() == [
        "lab/m: begins with one call (12 calls, $0.0034, 0:00 of usually 2 to 5 min)",
        "lab/m: a burst of 2: 2 admitted (12 calls, $0.0034, 0:00 of usually 2 to 5 min)",
        "lab/m: waits 23 s (12 calls, $0.0034, 0:00 of usually 2 to 5 min)",
    ]


def test_on_a_terminal_one_line_is_redrawn_counts_down_and_is_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    text = shown(Terminal(), lambda display: display.waits("lab/m", 5.0), seconds=3.5)
    painted = [frame.removeprefix("\r").removesuffix("\x1b[K") for frame in text.split("\x1b[J")[:-1]]
    assert "\n" not in text
    assert [line.split(" (")[0] for line in painted[1:]] == [f"lab/m: waits {left} s" for left in (5, 4, 3, 2)]
    assert max(map(len, painted)) <= 39


def test_the_time_of_a_model_so_far_is_shown_beside_the_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    text = shown(Terminal(), lambda display: display.waits("lab/m", 90.0), seconds=83.5)
    # The last second that is counted down before 83.5 s is the 83rd: 1:23.
    assert text.rpartition("waits ")[2].startswith("7 s (12 calls, $0.0034, 1:23 of usually 2 to 5 min)")


def test_what_a_server_says_is_inert_in_it() -> None:
    failed = Answer("failed", detail="400: \x1b[31mred\x07")
    assert "\x1b" not in shown(io.StringIO(), lambda display: display.got("lab/m", seen(failed), 0))


def test_who_closes_the_log_stops_no_probe() -> None:
    stream = io.StringIO()

    async def main() -> None:
        display = ProbeDisplay(stream, lambda: (1, None))
        stream.close()
        display.begins("lab/m")
        display.got("lab/m", seen(ADMITTED, ADMITTED), 0)

    run_virtually(main())
