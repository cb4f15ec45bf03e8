"""Every call of a tool has a result: what it returned, or in a line what went wrong. No tool holds up an item."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

import pytest

from millstream.bench.evaluation.door.defect import BenchmarkDefect
from millstream.bench.tools.carrying_out import RESULT_CHARS_MAX, Workers
from millstream.bench.tools.toolset import AnyTool, CarryOut, Offer, ToolSet
from millstream.engine.content import Image, Tool, ToolCall, ToolResult
from millstream.engine.fault import LocalFault

SEEN = Image("data:image/png;base64,AAAA")


async def unkept(question: dict[str, Any], carry_out: CarryOut) -> ToolResult:
    return await carry_out()


async def offered(toolset: ToolSet) -> Offer:
    return await toolset.offer(None, toolset.of_item(), unkept)


async def carried_out(offer: Offer, name: str, arguments: str = "{}") -> ToolResult:
    begun = offer.begun(ToolCall("c", name, arguments))
    return begun if isinstance(begun, ToolResult) else await begun[1]()


def results(tools: Sequence[AnyTool], *calls: tuple[str, str], limit_s: float = 5.0) -> list[ToolResult]:
    """The results of calls, all at once."""

    async def all_of_them() -> list[ToolResult]:
        offer = await offered(ToolSet(tools, time_limit_s=limit_s))
        return await asyncio.gather(*(carried_out(offer, *call) for call in calls))

    return asyncio.run(all_of_them())


def result(function: Callable[..., Any], arguments: str = "{}", *, limit_s: float = 5.0) -> ToolResult:
    (only,) = results([function], (function.__name__, arguments), limit_s=limit_s)
    return only


def twice(word: str) -> str:
    return 2 * word


def test_what_a_tool_returns_is_its_result() -> None:
    async def slowly(word: str) -> str:
        await asyncio.sleep(0.01)
        return word.upper()

    @wraps(slowly)
    def wrapped(word: str) -> Awaitable[object]:
        async def more() -> object:
            return [await slowly(word)]

        return more()

    wrapped.__name__ = "wrapped"
    calls = [(name, '{"word": "b"}') for name in ("slowly", "twice", "wrapped")]
    assert results([twice, slowly, wrapped], *calls) == [
        ToolResult("", "B", "slowly"),
        ToolResult("", "bb", "twice"),
        ToolResult("", '["B"]', "wrapped"),
    ]


def test_values_become_text_or_images() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    for value, content in [
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (2.5, "2.5"),
        (None, "null"),
        (float("nan"), "NaN"),
        ([1.5, float("-inf"), {3: "ß"}], '[1.5,-Infinity,{"3":"ß"}]'),
        ("\ud800", "?"),
        (Odd(), "odd"),
        (SEEN, (SEEN,)),
        (["see", SEEN, {"b": 1}], ("see", SEEN, '{"b":1}')),
    ]:

        def given(value: object = value) -> object:
            return value

        given.__annotations__["value"] = str
        assert result(given).content == content


def test_a_result_of_ten_megabytes_is_cut_and_says_so() -> None:
    def big() -> str:
        return "x" * 10_000_000

    content = result(big).content
    assert isinstance(content, str) and len(content) < RESULT_CHARS_MAX + 100
    assert content.endswith(f"\n[The result has 10,000,000 characters. These were its first {RESULT_CHARS_MAX:,}.]")

    def pictured() -> list[object]:
        return [SEEN, "x" * RESULT_CHARS_MAX, "y" * 9]

    parts = result(pictured).content
    assert parts[0] == SEEN and len(parts[1]) == RESULT_CHARS_MAX  # type: ignore[arg-type]
    assert parts[2] == "\n[The result has 9 characters. These were its first 0.]"


def test_exceptions_that_models_read_are_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(n: int) -> int:
        return 1 // n

    async def main() -> None:
        toolset = ToolSet([breaks])
        offer = await offered(toolset)
        for number in (0, 1, 0):
            await carried_out(offer, "breaks", f'{{"n": {number}}}')
        await toolset.close()

    asyncio.run(main())
    said = "the tool breaks raised an exception 2 times, which models read: the first ZeroDivisionError"
    assert [record.message.startswith(said) for record in caplog.records] == [True]


def test_an_exception_is_the_result_of_its_tool() -> None:
    def fails() -> str:
        raise KeyError("key")

    def ends() -> str:
        sys.exit(3)

    async def ends_the_loop() -> str:
        sys.exit(4)

    async def is_cancelled() -> str:
        raise asyncio.CancelledError

    def closes() -> str:
        raise GeneratorExit

    async def closes_the_task() -> str:
        raise GeneratorExit

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def mute() -> str:
        raise Mute

    tools = [fails, ends, ends_the_loop, is_cancelled, closes, closes_the_task, mute]
    made = results(tools, *((tool.__name__, "") for tool in tools))
    assert all(each.is_error for each in made)
    assert [each.content for each in made] == [
        "KeyError: 'key'",
        "RuntimeError: SystemExit: 3",
        "RuntimeError: SystemExit: 4",
        "RuntimeError: CancelledError",
        "RuntimeError: GeneratorExit",
        "RuntimeError: GeneratorExit",
        "Mute",
    ]


def test_a_wrong_name_and_wrong_arguments_are_results_and_nothing_is_carried_out() -> None:
    asked = []

    def note(word: str) -> str:
        asked.append(word)
        return word

    made = results([note], ("notes", "{}"), ("note", '{"word": 3}'), ("note", "}"))
    assert asked == [] and [each.is_error for each in made] == [True] * 3
    assert made[0].content == "there is no tool 'notes'; there are: note"
    assert "Expected `str`, got `int` - at `$.word`. note takes a JSON object with word." in made[1].content


def test_a_tool_that_hangs_is_abandoned_after_its_limit_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    go_on, cancelled = threading.Event(), []

    def hangs() -> str:
        go_on.wait()
        return "late"

    async def sleeps() -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "late"

    async def main() -> None:
        toolset = ToolSet([hangs, sleeps], time_limit_s=0.1)
        offer = await offered(toolset)
        began = time.monotonic()
        made = await asyncio.gather(*(carried_out(offer, name) for name in ("hangs", "sleeps")))
        assert time.monotonic() - began < 1.0
        for each, name in zip(made, ("hangs", "sleeps"), strict=True):
            assert each.content == f"{name} gave no result in 0.1 s and was abandoned" and each.is_error
        assert cancelled == [True] and toolset.workers.still_running == 1
        await toolset.close()
        assert "0.1 s and were abandoned: hangs 1, sleeps 1; 1 of them still run" in caplog.text
        go_on.set()
        while toolset.workers.still_running:  # noqa: ASYNC110 (a thread ends)
            await asyncio.sleep(0.001)

    asyncio.run(main())


def test_abandoned_threads_are_bounded_and_do_not_take_the_place_of_others() -> None:
    go_on = threading.Event()

    async def main() -> None:
        workers = Workers(0.01, at_work_most=1, left_most=2)
        for _ in range(2):
            assert "gave no result in" in str((await workers.in_thread("waits", go_on.wait)).content)
        with pytest.raises(LocalFault, match="2 calls of tools ran over their time limit and still run"):
            await workers.in_thread("waits", go_on.wait)
        go_on.set()
        while workers.still_running:  # noqa: ASYNC110 (a thread ends)
            await asyncio.sleep(0.001)
        workers.limit_s = 5.0
        assert (await workers.in_thread("returns", lambda: "value")).content == "value"

    asyncio.run(main())


def test_cancellation_passes_through_a_tool() -> None:
    async def main() -> None:
        begun, cancelled = asyncio.Event(), []

        async def waits() -> str:
            begun.set()
            try:
                await asyncio.sleep(1000)
            finally:
                cancelled.append(True)
            return ""

        task = asyncio.create_task(carried_out(await offered(ToolSet([waits])), "waits"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled == [True]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (twice, "tools: expected a list of functions and ms.mcp(…), got <function twice"),
        (["twice"], "tools: expected functions and ms.mcp(…), got 'twice'"),
        ([Tool("twice")], "tools: expected functions and ms.mcp(…), got Tool(name='twice'"),
    ],
)
def test_what_is_no_tool_is_refused(tools: Any, says: str) -> None:
    with pytest.raises(BenchmarkDefect) as refused:
        ToolSet(tools)
    assert str(refused.value).startswith(says)


def test_two_tools_of_one_name_are_refused() -> None:
    def other() -> str:
        return ""

    other.__name__ = "twice"
    with pytest.raises(BenchmarkDefect, match="tools: two are called twice: name each differently"):
        ToolSet([twice, other])
