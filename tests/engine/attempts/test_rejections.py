"""A lane whose first calls are all useless is stopped early: rejected alike, or cut off before the first word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.content import ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.engine.fault import Stop, Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
Script = Callable[[str, float], Fault | None]


def rejected(detail: str = "404: The model `m` does not exist", status: int = 404) -> Fault:
    return Fault("rejected", detail, "never", status)


def number_of(prompt: str) -> int:
    return int(prompt.rpartition(" ")[2])


def run_of(
    tmp_path: Path, script: Script, count: int, concurrency: int, latency_s: float | Callable[[], float] = 0.1
) -> tuple[list[Outcome], tuple[Stop, ...], int]:
    """The outcomes, the stops, and how many calls were sent."""
    return played(ScriptedProvider(script, latency_s), tmp_path, count, concurrency)


def played(
    provider: ScriptedProvider, tmp_path: Path, count: int, concurrency: int, policy: RetryPolicy | None = None
) -> tuple[list[Outcome], tuple[Stop, ...], int]:
    found: list[Outcome] = []

    async def main() -> tuple[Stop, ...]:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=concurrency), policy=policy) as bench:
            try:
                async for outcome in run_calls(bench.scheduler, prompts(count)):
                    found.append(outcome)
            except Stopped as stopped:
                return stopped.stops
            finally:
                assert bench.lane(M).in_flight == 0
            return ()

    stops = run_virtually(main())
    return found, stops, len(provider.arrivals)


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_a_model_that_does_not_exist_costs_twenty_calls_and_those_in_flight(tmp_path: Path, concurrency: int) -> None:
    found, stops, sent = run_of(tmp_path, lambda prompt, at: rejected(), 100_000, concurrency)
    (stop,) = stops
    assert (stop.lane, stop.reason) == (M, "rejected")
    assert stop.detail == (
        f"script/m rejected {sent:,} calls alike and answered none (404: The model `m` does not exist): check the "
        f"model's name and what is sent to it"
    )
    assert 20 <= sent < 20 + concurrency
    assert {outcome.status for outcome in found} == {"rejected"} and len(found) == sent


def test_rejections_alike_but_for_a_requests_id_are_alike(tmp_path: Path) -> None:
    def script(prompt: str, at: float) -> Fault:
        return rejected(f"400: no such deployment (request id: 7f3a{number_of(prompt):08x}-09)", 400)

    _, stops, sent = run_of(tmp_path, script, 1_000, 1)
    assert ([stop.reason for stop in stops], sent) == (["rejected"], 20)


def test_a_lane_asked_in_two_ways_is_stopped_where_both_are_rejected(tmp_path: Path) -> None:
    def script(prompt: str, at: float) -> Fault:
        return rejected(f"400: temperature {number_of(prompt) % 2} is not supported", 400)

    _, stops, sent = run_of(tmp_path, script, 1_000, 1)
    assert ([stop.reason for stop in stops], sent) == (["rejected"], 39)


@pytest.mark.parametrize(
    "fault",
    [
        lambda prompt: rejected("413: Request Entity Too Large", 413),
        lambda prompt: rejected("429: Request too large for m", 429),
        lambda prompt: rejected(f"400: the prompt has {9_000 + number_of(prompt):,} tokens, at most 8,192", 400),
    ],
    ids=["413", "429", "sizes in the message"],
)
def test_prompts_that_are_too_large_stop_nothing(tmp_path: Path, fault: Callable[[str], Fault]) -> None:
    found, stops, _ = run_of(tmp_path, lambda prompt, at: fault(prompt) if number_of(prompt) < 60 else None, 100, 8)
    assert (len(found), stops) == (100, ())


def test_rejections_that_only_come_sooner_than_the_answers_stop_nothing(tmp_path: Path) -> None:
    # Every other prompt is rejected in a tenth of a second; an answer takes ten.
    waits = iter([0.1, 10.0] * 100)

    def script(prompt: str, at: float) -> Fault | None:
        return rejected("400: this text is not accepted", 400) if number_of(prompt) % 2 == 0 else None

    found, stops, _ = run_of(tmp_path, script, 200, 48, lambda: next(waits))
    assert (len(found), stops) == (200, ())


def test_one_answer_is_enough_for_good(tmp_path: Path) -> None:
    found, stops, _ = run_of(tmp_path, lambda prompt, at: None if number_of(prompt) == 3 else rejected(), 200, 1)
    assert (len(found), stops) == (200, ())


def test_an_answer_out_of_the_cache_is_one(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ScriptedProvider()
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            async for _ in run_calls(bench.scheduler, prompts(1)):
                pass
        provider.script = lambda prompt, at: rejected()
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            found = [outcome async for outcome in run_calls(bench.scheduler, prompts(100))]
            assert len(found) == 100 and found[0].cached

    run_virtually(main())


def test_an_answer_of_an_earlier_session_is_one(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ScriptedProvider(lambda prompt, at: rejected())
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            bench.lane(M).note_answer()
            found = [outcome async for outcome in run_calls(bench.scheduler, prompts(100))]
            assert len(found) == 100

    run_virtually(main())


def test_pages_that_are_not_found_say_nothing_of_other_pages(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ScriptedProvider(lambda prompt, at: rejected("404: there is no such page"))
        async with engine_over({"web/h": provider}, tmp_path, Lane("web/h", concurrency=4)) as bench:
            pages = (Call("web", f"https://h/{number}") for number in range(100))
            found = [outcome async for outcome in run_calls(bench.scheduler, pages)]
            assert len(found) == 100

    run_virtually(main())


def test_keys_of_one_model_are_counted_together(tmp_path: Path) -> None:
    keys = [ScriptedProvider(lambda prompt, at: rejected()) for _ in range(2)]

    async def main() -> None:
        async with engine_over({M: keys}, tmp_path, Lane(M, concurrency=1)) as bench:
            with pytest.raises(Stopped) as stopped:
                async for _ in run_calls(bench.scheduler, prompts(1_000)):
                    pass
            assert [stop.reason for stop in stopped.value.stops] == ["rejected"]

    run_virtually(main())
    assert 20 <= sum(len(key.arrivals) for key in keys) <= 21


CUT = Reply("", Usage(10, 100, reasoning=100), "length")


class Thinking(ScriptedProvider):
    """Answers that are cut off and empty, but for the prompts whose numbers are in `replies`."""

    def __init__(self, replies: Mapping[int, Reply] = MappingProxyType({}), script: Script | None = None) -> None:
        super().__init__(script, 0.1)
        self._replies = replies

    def decode(self, response: Response) -> Reply:
        return self._replies.get(number_of(response.body.decode()), CUT)


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_answers_that_are_all_cut_off_and_empty_cost_twenty_calls_and_those_in_flight(
    tmp_path: Path, concurrency: int
) -> None:
    found, stops, sent = played(Thinking(), tmp_path, 100_000, concurrency)
    (stop,) = stops
    assert (stop.lane, stop.reason) == (M, "truncated")
    assert f"its first {sent:,} answers were all cut off at max_tokens" in stop.detail
    assert "raise --max-tokens N" in stop.detail
    assert 20 <= sent < 20 + concurrency
    assert {outcome.status for outcome in found} == {"ok"} and len(found) == sent


@pytest.mark.parametrize(
    "useful",
    [
        Reply("A", Usage(10, 1), "stop"),
        Reply("A", Usage(10, 100), "length"),
        Reply("", Usage(10, 1), "stop"),
        Reply("", Usage(10, 1), "content_filter", refused=True),
        Reply("", Usage(10, 9), "length", parts=(ToolCall("1", "look"),)),
        Reply("", Usage(10, 1), "length", logprobs=()),
    ],
    ids=["an answer", "a cut one with a word", "an empty one", "a refusal", "a call of a tool", "log-probabilities"],
)
def test_one_useful_answer_ends_it_even_where_it_is_still_out_after_twenty(tmp_path: Path, useful: Reply) -> None:
    for number in (3, 19, 23):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, stops, _ = played(Thinking({number: useful}), folder, 200, 8)
        assert (len(found), stops) == (200, ()), number


def test_cut_answers_and_rejections_are_counted_apart(tmp_path: Path) -> None:
    def script(prompt: str, at: float) -> Fault | None:
        return rejected("400: no", 400) if number_of(prompt) % 2 else None

    _, stops, sent = played(Thinking(script=script), tmp_path, 1_000, 1)
    assert ([stop.reason for stop in stops], sent) == (["truncated"], 39)


def test_a_policy_without_the_limit_stops_nothing(tmp_path: Path) -> None:
    found, stops, _ = played(Thinking(), tmp_path, 200, 8, RetryPolicy(cut_max=None))
    assert (len(found), stops) == (200, ())


def test_cut_answers_out_of_the_cache_stop_what_would_be_sent(tmp_path: Path) -> None:
    played(Thinking(), tmp_path, 15, 1)
    again = Thinking()
    found, stops, sent = played(again, tmp_path, 1_000, 1)
    assert (len(found), [stop.reason for stop in stops], sent) == (20, ["truncated"], 5)
    found, stops, sent = played(Thinking(), tmp_path, 1_000, 1)
    assert (len(found), [stop.reason for stop in stops], sent) == (20, ["truncated"], 0)
    found, stops, sent = played(Thinking(), tmp_path, 10, 1)
    assert (len(found), stops, sent) == (10, (), 0)


@pytest.mark.parametrize(("cut", "sent"), [(19, 1), (20, 0), (528, 0)])
def test_cut_answers_of_an_earlier_session_count(tmp_path: Path, cut: int, sent: int) -> None:
    async def main() -> None:
        provider = Thinking()
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            bench.lane(M).note_cut(cut)
            with pytest.raises(Stopped):
                [outcome async for outcome in run_calls(bench.scheduler, prompts(100))]
            assert len(provider.arrivals) == sent

    run_virtually(main())
