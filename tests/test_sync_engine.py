"""The engine without await: from scripts, threads, notebooks and generators, left early, interrupted, closed."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import Provider, environment, run_program
from scripted import ListSink

import millstream as ms
from millstream.wiring.thread_bridge import CALLS_AHEAD, OUTCOMES_AHEAD

M = "openai/open"
LANE = ms.Lane(M, concurrency=16)


@pytest.fixture
def engine(provider: Provider, tmp_path: Path) -> Iterator[ms.SyncEngine]:
    with ms.SyncEngine(LANE, base_url=provider.base_url, cache=tmp_path / "cache") as opened:
        yield opened


def calls(count: int, word: str = "") -> Iterator[ms.Call]:
    return (ms.Call(M, f"Is {number} prime?{word}", tag=number) for number in range(count))


def wait_until_idle(engine: ms.SyncEngine) -> None:
    deadline = time.monotonic() + 20
    while engine.statistics().in_flight:
        assert time.monotonic() < deadline, engine.statistics()
        time.sleep(0.01)


# Asking


def test_what_it_answers_is_what_the_engine_answers(engine: ms.SyncEngine, provider: Provider) -> None:
    call = ms.Call(M, "Say A or B.")
    first, again = engine.ask(call), engine.ask(call)
    assert (first.status, first.cached, again.cached, first.key) == ("ok", False, True, engine.key_of(call))
    assert engine.family_of(M) == "openai"
    found = {outcome.call.tag: outcome for outcome in engine.run(calls(1000))}
    assert len(found) == 1000 and {outcome.status for outcome in found.values()} == {"ok"}
    assert provider.calls() == 1001
    (lane,) = engine.statistics().lanes
    assert (lane.model, lane.in_flight, lane.queued, lane.concurrency, lane.requests) == (M, 0, 0, 16, 1001)


def test_an_empty_input_has_no_outcomes_and_two_runs_may_be_read_in_turns(engine: ms.SyncEngine) -> None:
    assert list(engine.run([])) == []
    one, other = engine.run(calls(300)), engine.run(calls(300, " Please."))
    pairs = [(first.call.input, second.call.input) for first, second in zip(one, other, strict=True)]
    assert len({first for first, _ in pairs} | {second for _, second in pairs}) == 600


def test_what_stops_a_lane_is_raised_as_the_engine_raises_it(engine: ms.SyncEngine, provider: Provider) -> None:
    with pytest.raises(ms.ConfigurationError, match="no provider 'opnai'"):
        engine.ask(ms.Call("opnai/m", "A?"))
    with pytest.raises(ms.ConfigurationError, match="no provider 'opnai'"):
        list(engine.run([ms.Call("opnai/m", "A?")]))
    engine.halt("interrupted", "enough for today")
    with pytest.raises(ms.Stopped, match="enough for today"):
        engine.ask(ms.Call(M, "A?"))
    with pytest.raises(ms.Stopped, match="enough for today"):
        list(engine.run(calls(3)))
    assert provider.calls() == 0


@pytest.mark.process
def test_searches_and_pages_are_reached_too(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/whale.txt").write_text("The blue whale is the largest animal.")
    with ms.SyncEngine(settings=ms.Settings(cache=tmp_path / "c", corpus=tmp_path / "docs")) as engine:
        (hit,) = engine.search("search/corpus", "largest animal").hits
        assert engine.read(hit.url).text.startswith("The blue whale")


# The input


def test_the_input_is_read_in_the_thread_that_takes_the_outcomes_and_may_ask_the_engine_itself(
    engine: ms.SyncEngine,
) -> None:
    readers = set()

    def asking() -> Iterator[ms.Call]:
        for number in range(20):
            readers.add(threading.current_thread())
            first = engine.ask(ms.Call(M, f"Which number comes after {number}?"))
            assert first.reply is not None
            yield ms.Call(M, first.reply.text)

    assert len(list(engine.run(asking()))) == 20
    assert readers == {threading.current_thread()}


def test_a_million_calls_are_read_no_further_than_is_taken(engine: ms.SyncEngine) -> None:
    read = 0

    def counted() -> Iterator[ms.Call]:
        nonlocal read
        for call in calls(1_000_000):
            read += 1
            yield call

    outcomes = engine.run(counted())
    assert read == 0
    bound = CALLS_AHEAD + OUTCOMES_AHEAD + 256 + 16 + 64
    for taken in range(1, 4):
        next(outcomes)
        before = read
        time.sleep(0.3)
        assert read == before <= taken + bound
    del outcomes


def test_an_input_that_is_slow_holds_up_no_outcome(engine: ms.SyncEngine) -> None:
    seen: list[ms.Outcome] = []

    def slow() -> Iterator[ms.Call]:
        for number, call in enumerate(calls(12)):
            if number > 8:
                time.sleep(0.2)
                # Those that went before have long been answered: each call that is waited for lets one out.
                assert len(seen) >= number - 9
            yield call

    for outcome in engine.run(slow()):
        seen.append(outcome)
    assert len(seen) == 12


def test_an_error_of_the_input_comes_after_what_was_sent_before_it(engine: ms.SyncEngine) -> None:
    def broken() -> Iterator[ms.Call]:
        yield from calls(30)
        raise OSError("the disk is gone")

    seen: list[ms.Outcome] = []
    with pytest.raises(OSError, match="the disk is gone"):
        for outcome in engine.run(broken()):
            seen.append(outcome)
    assert len(seen) == 30


def test_an_asynchronous_input_is_refused_with_the_engine_that_takes_it(engine: ms.SyncEngine) -> None:
    async def coming() -> AsyncIterator[ms.Call]:
        yield ms.Call(M, "A?")

    with pytest.raises(TypeError, match=r"async ones are for ms\.Engine"):
        engine.run(coming())  # type: ignore[arg-type]


# Left early, interrupted, closed


def test_leaving_the_loop_cancels_what_is_in_flight(engine: ms.SyncEngine, provider: Provider) -> None:
    provider.set_faults("silence=30,at=5-100")
    for _ in engine.run(calls(1000)):
        break
    assert engine.statistics().in_flight == 0
    provider.set_faults()
    with pytest.raises(ZeroDivisionError):
        for outcome in engine.run(calls(1000, " Now?")):
            outcome.call.tag / 0
    assert engine.statistics().in_flight == 0
    assert len(list(engine.run(calls(100)))) == 100


def test_a_run_that_nobody_began_or_that_was_dropped_holds_nothing(engine: ms.SyncEngine) -> None:
    engine.run(calls(10))
    outcomes = engine.run(calls(1000))
    next(outcomes)
    # In a circle, so that a collection finds it, in whichever thread that happens.
    circle: list[object] = [outcomes]
    circle.append(circle)
    del outcomes, circle
    gc.collect()
    wait_until_idle(engine)
    assert engine.ask(ms.Call(M, "Still there?")).status == "ok"


INTERRUPTED = """
import sys, threading, time, _thread
import millstream as ms

def calls():
    for number in range(100_000):
        yield ms.Call("openai/open", f"Number {number}?", tag=number)

seen = 0
with ms.SyncEngine(ms.Lane("openai/open", concurrency=8), base_url=sys.argv[1], cache="cache") as engine:
    try:
        for outcome in engine.run(calls()):
            seen += 1
            if seen == 20:
                print("ready", flush=True)
    except KeyboardInterrupt:
        print("left", engine.statistics().in_flight, flush=True)
    print([thread.name for thread in threading.enumerate() if thread.name == "millstream engine"])
print(seen, [thread.name for thread in threading.enumerate() if thread.name == "millstream engine"])
"""


def test_an_interrupt_in_the_main_thread_ends_a_run_in_time_and_what_was_answered_is_kept(
    provider: Provider, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, provider.base_url]
    began = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert began.stdout is not None and began.stdout.readline() == "ready\n"
    began.send_signal(signal.SIGINT)
    out, err = began.communicate(timeout=20)
    assert (began.returncode, err) == (0, "")
    left, inside, after = out.splitlines()
    assert (left, inside) == ("left 0", "['millstream engine']") and after.endswith(" []")
    received = provider.calls()
    with ms.SyncEngine(base_url=provider.base_url, cache=tmp_path / "cache") as engine:
        again = (ms.Call(M, f"Number {number}?", tag=number) for number in range(received))
        cached = sum(outcome.cached for outcome in engine.run(again))
    # All but what was in flight.
    assert cached >= received - 8


def test_it_is_used_by_many_threads_at_once_and_alike_calls_are_sent_once(
    engine: ms.SyncEngine, provider: Provider
) -> None:
    def work(number: int) -> int:
        own = sum(outcome.status == "ok" for outcome in engine.run(calls(100)))
        return own + (engine.ask(ms.Call(M, f"Thread {number % 2}?")).status == "ok")

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == [101] * 8
    assert provider.calls() == 102


def test_a_closed_engine_says_how_to_open_it_and_can_be_opened_again(provider: Provider, tmp_path: Path) -> None:
    engine = ms.SyncEngine(base_url=provider.base_url, cache=tmp_path)
    call = ms.Call(M, "A or B?")
    for _ in range(2):
        for use in (engine.statistics, lambda: engine.ask(call), lambda: engine.run([call]), lambda: engine.read("u")):
            with pytest.raises(RuntimeError, match=r"^the engine is closed: use it inside `with SyncEngine\("):
                use()
        with engine:
            assert engine.ask(call).status == "ok"
            with pytest.raises(RuntimeError, match="the engine is open already"):
                engine.__enter__()
            left = engine.run(calls(1000))
            next(left)
        with pytest.raises(RuntimeError, match="the engine was closed while this was under way"):
            list(left)
    assert "millstream engine" not in {thread.name for thread in threading.enumerate()}


def test_an_engine_closed_by_another_thread_ends_who_waits_for_it(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("silence=30")
    engine = ms.SyncEngine(base_url=provider.base_url, cache=tmp_path)
    with ThreadPoolExecutor(2) as threads:
        with engine:
            asked = threads.submit(engine.ask, ms.Call(M, "A?"))
            run = threads.submit(list, engine.run(calls(20)))
            provider.await_calls(3)
        for waiting in (asked, run):
            with pytest.raises(RuntimeError, match="the engine was closed while this was under way"):
                waiting.result(10)


def test_what_can_not_be_opened_is_told_where_it_is_opened_and_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = threading.active_count()
    with pytest.raises(ms.LocalFault, match="file"), ms.SyncEngine(cache=tmp_path / "file"):
        pass
    assert threading.active_count() == before


def test_a_sink_that_waits_for_its_own_engine_is_told_so(engine: ms.SyncEngine) -> None:

    def waiting(outcome: ms.Outcome) -> None:
        engine.ask(outcome.call)

    sink = ListSink(waiting)
    with pytest.raises(RuntimeError, match="can't wait for the engine that it is called by"):
        list(engine.run(calls(1), sink))


# Loops, notebooks, forks


FORKED = """
import os, sys
import millstream as ms

call = ms.Call("openai/open", "A or B?")
with ms.SyncEngine(base_url=sys.argv[1], cache="cache") as engine:
    engine.ask(call)
    outcomes = engine.run([call, ms.Call("openai/open", "B or A?")])
    next(outcomes)
    if (child := os.fork()) == 0:
        try:
            engine.ask(call)
        except RuntimeError as error:
            print(error, flush=True)
        del outcomes
        engine.__exit__(None, None, None)
        with ms.SyncEngine(base_url=sys.argv[1], cache="other") as own:
            print(own.ask(call).status, flush=True)
        os._exit(0)
    print(os.waitpid(child, 0)[1], engine.ask(call).cached, len(list(outcomes)))
"""


def test_a_fork_is_told_to_open_its_own_and_its_parent_goes_on(provider: Provider, tmp_path: Path) -> None:
    done = run_program(tmp_path, FORKED, provider.base_url, flags=("-W", "ignore"))
    assert (done.code, done.err) == (0, "")
    told, own, parent = done.out.splitlines()
    assert told.startswith("the engine was opened in process ") and told.endswith(
        "a fork of it: open one in this process"
    )
    assert (own, parent) == ("ok", "0 True 1")
