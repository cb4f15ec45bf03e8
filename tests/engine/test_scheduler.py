"""One way for every call: identical ones are sent once, none gets another's answer, and modes keep their word."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from msgspec import json, structs
from scripted import ScriptedProvider, engine_over
from torture import SEED, record, times
from virtual_time import run_virtually

from millstream.engine.call import Call, Message, Outcome
from millstream.engine.endpoint import Fault, Request
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls
from millstream.engine.store.cache import Mode

M = "script/m"
REJECTED = Fault("rejected", "400 bad request", "never", 400)
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


# Identical calls


def test_a_thousand_identical_calls_at_once_make_one_send(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=3)) as bench:
            calls = [Call(M, "same", tag=number) for number in range(1000)]
            return await asyncio.gather(*(bench.scheduler.ask(call) for call in calls))

    found = run_virtually(main())
    assert len(provider.arrivals) == 1
    assert [outcome.call.tag for outcome in found] == list(range(1000))
    assert {outcome.reply.text for outcome in found if outcome.reply} == {"answer to same"}
    assert Counter(outcome.cached for outcome in found) == {False: 1, True: 999}
    assert sum(outcome.attempts for outcome in found) == 1


def test_identical_calls_of_one_run_are_sent_once_too(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=32)) as bench:
            calls = (Call(M, f"prompt {number % 7}", tag=number) for number in range(700))
            return [outcome async for outcome in run_calls(bench.scheduler, calls)]

    found = run_virtually(main())
    assert len(provider.arrivals) == 7
    assert sorted(outcome.call.tag for outcome in found) == list(range(700))
    for outcome in found:
        assert outcome.reply is not None and outcome.reply.text == f"answer to prompt {outcome.call.tag % 7}"


def test_trials_of_one_prompt_are_separate_samples(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            asked = [bench.scheduler.ask(Call(M, "same", trial=number)) for number in range(5)]
            found = await asyncio.gather(*asked)
            assert len({outcome.key for outcome in found}) == 5

    run_virtually(main())
    assert len(provider.arrivals) == 5


def test_when_the_first_caller_leaves_its_call_goes_on_for_the_others(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1.0)

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path) as bench:
            tasks = [asyncio.create_task(bench.scheduler.ask(Call(M, "same", tag=number))) for number in range(50)]
            await asyncio.sleep(0.5)
            tasks[0].cancel()
            found = await asyncio.gather(*tasks[1:])
            assert tasks[0].cancelled()
            assert bench.lane(M).in_flight == provider.in_flight == 0
            return found

    found = run_virtually(main())
    assert len(provider.arrivals) == 1
    assert [outcome.call.tag for outcome in found] == list(range(1, 50))
    assert {(outcome.cached, outcome.cost) for outcome in found} == {(True, None)}


def test_an_answer_that_had_come_when_its_caller_left_is_not_asked_for_again(tmp_path: Path) -> None:
    latencies = iter([1.0, 9.0])
    provider = ScriptedProvider(latency_s=lambda: next(latencies))

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path) as bench:
            first = asyncio.create_task(bench.scheduler.ask(Call(M, "same")))
            await asyncio.sleep(0)
            other = asyncio.create_task(bench.scheduler.ask(Call(M, "other, whose commit is worth waiting for")))
            second = asyncio.create_task(bench.scheduler.ask(Call(M, "same")))
            await asyncio.sleep(1.001)  # answered, not yet committed
            assert provider.in_flight == 1 and not first.done()
            first.cancel()
            third = await bench.scheduler.ask(Call(M, "same"))  # nobody's call is in flight: only the commit is
            return [await second, third, await other]

    found = run_virtually(main())
    assert [outcome.cached for outcome in found] == [True, True, False]
    assert len(provider.arrivals) == 2


def test_the_last_caller_that_leaves_while_its_answer_is_stored_goes_on_when_the_slot_is_free(tmp_path: Path) -> None:
    latencies = iter([1.0, 9.0])
    provider = ScriptedProvider(latency_s=lambda: next(latencies))

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            first = asyncio.create_task(bench.scheduler.ask(Call(M, "same")))
            await asyncio.sleep(0)
            other = asyncio.create_task(bench.scheduler.ask(Call(M, "other, whose commit is worth waiting for")))
            await asyncio.sleep(1.001)  # answered, not yet committed
            assert provider.in_flight == 1 and bench.lane(M).in_flight == 2
            first.cancel()
            await asyncio.wait([first])
            assert first.cancelled() and bench.lane(M).in_flight == 1
            await other

    run_virtually(main())


def test_callers_that_all_leave_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=10.0)

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=16)) as bench:
            tasks = [asyncio.create_task(bench.scheduler.ask(Call(M, "same"))) for _ in range(20)]
            await asyncio.sleep(1)
            for task in tasks:  # the one that sends is the first to go
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() for task in tasks)
            assert bench.lane(M).in_flight == provider.in_flight == 0
            return asyncio.get_running_loop().time()

    assert run_virtually(main()) < 1.1
    assert len(provider.arrivals) == 1


def test_a_failure_is_shared_and_not_kept(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: REJECTED if at < 1 else None)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            found = await asyncio.gather(*(bench.scheduler.ask(Call(M, "same", tag=n)) for n in range(20)))
            assert [outcome.call.tag for outcome in found] == list(range(20))
            assert {outcome.status for outcome in found} == {"rejected"}
            assert not any(outcome.cached for outcome in found)
            assert sum(outcome.attempts for outcome in found) == len(provider.arrivals) == 1
            await asyncio.sleep(1)
            assert (await bench.scheduler.ask(Call(M, "same"))).status == "ok"

    run_virtually(main())


def test_a_stop_reaches_everyone_who_waits_for_the_same_call(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            asked = (bench.scheduler.ask(Call(M, "same")) for _ in range(20))
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(one, Stopped) and one.stops[0].reason == "empty_account" for one in found)

    run_virtually(main())
    assert len(provider.arrivals) == 1


class EveryField(ScriptedProvider):
    """Puts every field that was set into the body, and answers with that body."""

    def encode(self, call: Call) -> Request:
        fields = structs.asdict(call)
        for hidden in ("model", "trial", "tag", "stream"):
            del fields[hidden]
        body = json.encode({name: value for name, value in fields.items() if value is not None}, order="sorted")
        identity = f"script://{call.model}"
        return Request(identity, identity, body, body, body, b"{}", call.stream)


def any_call(chance: random.Random) -> Call:
    words = ["A", "B", "A ", "position <<A>>", "ä", "{}", "\x00", "1"]

    def maybe(value: object) -> object:
        return value if chance.random() < 0.5 else None

    text = " ".join(chance.choices(words, k=3))
    turns = tuple(Message(chance.choice(["user", "system"]), chance.choice(words)) for _ in range(chance.randint(1, 3)))
    fields = {
        "temperature": maybe(chance.choice([0, 0.5, 1.0])),
        "max_tokens": maybe(chance.randint(1, 3)),
        "top_p": maybe(chance.choice([0.5, 1.0])),
        "stop": maybe(tuple(chance.choices(words, k=2))),
        "seed": maybe(chance.randint(0, 3)),
        "extra": maybe({chance.choice(words): chance.randint(0, 2)}),
        "trial": chance.randint(0, 3),
    }
    return Call(chance.choice(["script/m", "script/n"]), chance.choice([text, turns]), **fields)  # type: ignore[arg-type]


def test_pairs_that_differ_in_one_field_never_share_an_answer(tmp_path: Path) -> None:
    chance, wanted = random.Random(SEED), times(2000, 20_000)
    endpoints: dict[str, ScriptedProvider] = {name: EveryField(latency_s=0.0) for name in ("script/m", "script/n")}
    fields = ["model", "input", "temperature", "max_tokens", "top_p", "stop", "seed", "extra", "trial"]
    asked: dict[str, tuple[str, bytes, int]] = {}

    async def main() -> int:
        pairs = 0
        async with engine_over(endpoints, tmp_path) as bench:
            while pairs < wanted:
                one, field = any_call(chance), chance.choice(fields)
                other = structs.replace(one, **{field: getattr(any_call(chance), field)})
                if one == other:
                    continue
                pairs += 1
                for outcome in await asyncio.gather(bench.scheduler.ask(one), bench.scheduler.ask(other)):
                    body = endpoints[outcome.call.model].encode(outcome.call).body
                    assert outcome.reply is not None and outcome.reply.text == "answer to " + body.decode()
                    question = (outcome.call.model, body, outcome.call.trial)
                    assert asked.setdefault(outcome.key, question) == question
        return pairs

    assert run_virtually(main()) == wanted
    assert len(asked) == len(set(asked.values()))
    assert sum(len(endpoint.arrivals) for endpoint in endpoints.values()) == len(asked)
    record("7", wanted, wanted, f"{len(asked):,} questions, each with a key and an answer of its own", f"{SEED}")


def test_neither_tag_nor_streaming_makes_another_question(tmp_path: Path) -> None:
    provider = EveryField()

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            await bench.scheduler.ask(Call(M, "same", tag="one"))
            again = await bench.scheduler.ask(Call(M, "same", tag="two", stream=True))
            assert again.cached and again.call.tag == "two"

    run_virtually(main())


# Modes


def asked_in(mode: Mode, folder: Path, provider: ScriptedProvider, *names: str, scope: bytes = b"") -> list[Outcome]:
    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, folder, mode=mode, scope=scope) as bench:
            return [await bench.scheduler.ask(Call(M, name)) for name in names]

    return run_virtually(main())


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_record_and_replay_read_what_is_there_and_send_what_is_missing(mode: Mode, tmp_path: Path) -> None:
    provider = ScriptedProvider()
    asked_in("record", tmp_path, provider, "a")
    found = asked_in(mode, tmp_path, provider, "a", "b", "b")
    assert [outcome.cached for outcome in found] == [True, False, True]
    assert provider.counts() == {"a": 1, "b": 1}


def test_strict_never_sends(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    asked_in("record", tmp_path, provider, "a")
    found = asked_in("strict", tmp_path, provider, "a", "b")
    assert [outcome.status for outcome in found] == ["ok", "not_cached"]
    assert (
        found[1].failure is not None and "is not in the cache and mode strict sends nothing" in found[1].failure.detail
    )
    assert provider.counts() == {"a": 1}


def test_live_ignores_what_other_runs_stored_and_keeps_its_own(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    asked_in("record", tmp_path, provider, "a")
    assert [outcome.cached for outcome in asked_in("live", tmp_path, provider, "a", "b", scope=b"run" * 5)] == [
        False
    ] * 2
    assert [outcome.cached for outcome in asked_in("live", tmp_path, provider, "a", "b", scope=b"run" * 5)] == [
        True
    ] * 2
    assert [outcome.cached for outcome in asked_in("record", tmp_path, provider, "b")] == [False]


def test_a_refusal_by_the_declared_quota_names_both_numbers_and_sends_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, tpm=1000)) as bench:
            outcome = await bench.scheduler.ask(Call(M, "x" * 4000, max_tokens=10))
            assert outcome.status == "rejected" and outcome.failure is not None
            assert "needs 1,010 tokens; lane script/m admits at most 1,000" in outcome.failure.detail

    run_virtually(main())
    assert provider.arrivals == []
