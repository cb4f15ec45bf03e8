"""Every call of a tool has a result: what it returned, or in a line what went wrong. No tool holds up an item."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import pytest

from millstream.bench.evaluation.door.defect import BenchmarkDefect
from millstream.bench.tools.carrying_out import Workers
from millstream.bench.tools.results import RESULT_CHARS_MAX
from millstream.bench.tools.toolbox import AnyTool, Kept, KeptFor, Toolbox, ToolSet
from millstream.engine.content import Image, Tool, ToolCall, ToolResult
from millstream.engine.fault import LocalFault

SEEN = Image("data:image/png;base64,AAAA")


class Store:
    """Keeps results by their questions, as an engine does."""

    def __init__(self) -> None:
        self.kept: dict[str, ToolResult] = {}

    async def __call__(
        self, name: str, question: Mapping[str, Any], work: Callable[[], Awaitable[ToolResult]], kept_for: KeptFor
    ) -> Kept:
        key = f"{name} {question}"
        is_replayed = key in self.kept
        if not is_replayed:
            self.kept[key] = await work()
        return Kept(self.kept[key], is_replayed)


def results(tools: Sequence[AnyTool], *calls: tuple[str, str], limit_s: float = 5.0) -> list[ToolResult]:
    """The results of calls, all at once."""

    async def carried_out() -> list[ToolResult]:
        toolset = ToolSet(tools, time_limit_s=limit_s)
        box = Toolbox(toolset, Store())
        offer = await box.offer()
        kept = await asyncio.gather(*(offer.result(ToolCall(f"c{n}", *call)) for n, call in enumerate(calls)))
        await box.close()
        return [each.result for each in kept]

    return asyncio.run(carried_out())


def result(function: Callable[..., Any], arguments: str = "{}", *, limit_s: float = 5.0) -> ToolResult:
    (only,) = results([function], (function.__name__, arguments), limit_s=limit_s)
    return only


def twice(word: str) -> str:
    return 2 * word


def test_what_a_tool_returns_is_its_result_with_the_calls_id_and_name() -> None:
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
        ToolResult("c0", "B", "slowly"),
        ToolResult("c1", "bb", "twice"),
        ToolResult("c2", '["B"]', "wrapped"),
    ]


def test_values_become_text_or_images() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    for value, content in [
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (2.5, "2.5"),
        (None, "null"),
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
        offer = await Toolbox(toolset, Store()).offer()
        for number in (0, 1, 0):
            await offer.result(ToolCall("c", "breaks", f'{{"n": {number}}}'))
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

    async def carried_out() -> None:
        toolset = ToolSet([hangs, sleeps], time_limit_s=0.1)
        offer = await Toolbox(toolset, Store()).offer()
        began = time.monotonic()
        kept = await asyncio.gather(*(offer.result(ToolCall("c", name)) for name in ("hangs", "sleeps")))
        assert time.monotonic() - began < 1.0
        for each, name in zip(kept, ("hangs", "sleeps"), strict=True):
            assert each.result.content == f"{name} gave no result in 0.1 s and was abandoned" and each.result.is_error
        assert cancelled == [True] and toolset.workers.still_running == 1
        await toolset.close()
        assert "0.1 s and were abandoned: hangs 1, sleeps 1; 1 of them still run" in caplog.text
        go_on.set()
        while toolset.workers.still_running:  # noqa: ASYNC110 (a thread ends)
            await asyncio.sleep(0.001)

    asyncio.run(carried_out())


def test_abandoned_threads_are_bounded_and_do_not_take_the_place_of_others() -> None:
    go_on = threading.Event()

    async def carried_out() -> None:
        workers = Workers(at_work_most=1, left_most=2)
        for _ in range(2):
            with pytest.raises(Exception, match="gave no result in"):
                await workers.thread("waits", go_on.wait, 0.01)
        with pytest.raises(LocalFault, match="2 calls of tools ran over their time limit and still run"):
            await workers.thread("waits", go_on.wait, 0.01)
        go_on.set()
        while workers.still_running:  # noqa: ASYNC110 (a thread ends)
            await asyncio.sleep(0.001)
        assert await workers.thread("returns", lambda: "value", 5.0) == "value"

    asyncio.run(carried_out())


def test_cancellation_passes_through_a_tool() -> None:
    async def carried_out() -> None:
        begun, cancelled = asyncio.Event(), []

        async def waits() -> str:
            begun.set()
            try:
                await asyncio.sleep(1000)
            finally:
                cancelled.append(True)
            return ""

        offer = await Toolbox(ToolSet([waits]), Store()).offer()
        task = asyncio.create_task(offer.result(ToolCall("c", "waits")))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled == [True]

    asyncio.run(carried_out())


def test_an_equal_call_is_a_call_of_its_own_and_is_replayed_in_its_place() -> None:
    done: list[str] = []

    def count(word: str) -> str:
        done.append(word)
        return str(len(done))

    async def carried_out(store: Store) -> list[Kept]:
        offer = await Toolbox(ToolSet([count]), store).offer()
        calls = ('{"word": "a"}', '{"word":"a"}', '{"word": "b"}')
        return [await offer.result(ToolCall("c", "count", each)) for each in calls]

    store = Store()
    first, again = asyncio.run(carried_out(store)), asyncio.run(carried_out(store))
    assert done == ["a", "a", "b"]
    assert [each.result.content for each in again] == [each.result.content for each in first] == ["1", "2", "3"]
    assert [each.is_replayed for each in first + again] == [False] * 3 + [True] * 3


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
