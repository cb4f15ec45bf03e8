"""One way for every call: sent once, answered once, written in order, whatever fails; in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

import pytest
from msgspec import json, structs
from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.cache import Cache, Mode
from millstream.engine.call import Call, Message, Outcome
from millstream.engine.endpoint import Fault, Request, Response
from millstream.engine.fault import LocalFault, Stopped
from millstream.engine.intake import LOOK_AHEAD
from millstream.engine.lane import Lane
from millstream.engine.retry import RetryPolicy
from millstream.engine.run import OUTLET_SIZE, run_calls

M = "script/m"
SERVER_ERROR = Fault("server_error", "500", "retry", 500)
REJECTED = Fault("rejected", "400 bad request", "never", 400)
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


class ListSink:
    """Keeps what it was given, and what it was asked to make safe."""

    def __init__(self, probe: Callable[[Outcome], None] | None = None) -> None:
        self.taken: list[Outcome] = []
        self.safe: list[Outcome] = []
        self.fault: LocalFault | None = None
        self.probe = probe

    def write(self, outcome: Outcome) -> None:
        if self.probe is not None:
            self.probe(outcome)
        self.taken.append(outcome)

    def flush(self) -> None:
        self.safe = list(self.taken)


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


def test_when_the_first_caller_leaves_another_takes_its_place(tmp_path: Path) -> None:
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
    assert len(provider.arrivals) == 2
    assert Counter(outcome.cached for outcome in found) == {False: 1, True: 48}


def test_an_answer_that_had_come_when_its_caller_left_is_not_asked_for_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1.0)

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path) as bench:
            first = asyncio.create_task(bench.scheduler.ask(Call(M, "same")))
            await asyncio.sleep(0)
            second = asyncio.create_task(bench.scheduler.ask(Call(M, "same")))
            await asyncio.sleep(1.001)  # answered, not yet committed
            assert provider.in_flight == 0 and not first.done()
            first.cancel()
            return await second

    assert run_virtually(main()).cached
    assert len(provider.arrivals) == 1


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


def test_two_thousand_pairs_that_differ_in_one_field_never_share_an_answer(tmp_path: Path) -> None:
    chance = random.Random(8)
    endpoints: dict[str, ScriptedProvider] = {name: EveryField(latency_s=0.0) for name in ("script/m", "script/n")}
    fields = ["model", "input", "temperature", "max_tokens", "top_p", "stop", "seed", "extra", "trial"]
    asked: dict[str, tuple[str, bytes, int]] = {}

    async def main() -> int:
        pairs = 0
        async with engine_over(endpoints, tmp_path) as bench:
            while pairs < 2000:
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

    assert run_virtually(main()) == 2000
    assert len(asked) == len(set(asked.values()))
    assert sum(len(endpoint.arrivals) for endpoint in endpoints.values()) == len(asked)


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


# Faults


def storm(chance: random.Random, ends_at: float, *, can_stop: bool) -> Callable[[str, float], Fault | None]:
    """Faults of every kind until the storm is over."""
    kinds = [
        SERVER_ERROR,
        REJECTED,
        Fault("connect", "refused", "retry", quota="refund"),
        Fault("disconnected", "keepalive closed", "retry", quota="refund", is_immediate=True),
        Fault("incomplete", "cut", "retry", is_billed_maybe=True),
        Fault("empty", "no choices", "retry", 200, quota="settle", attempts_max=2, usage_tokens=3),
        Fault("rate_limited", "429", "throttle", 429, cuts_rate=True),
        Fault("rate_limited", "429", "throttle", 429, retry_after_s=chance.uniform(0, 30)),
        Fault("connect", "out of files", "wait", quota="refund"),
    ]
    if can_stop:
        kinds += [
            Fault("rejected", "401", "confirm", 401),
            Fault("redirect", "302", "stop", 302),
            EMPTY_ACCOUNT,
        ]
    kinds = chance.sample(kinds, chance.randint(1, len(kinds)))
    share = chance.choice([0.05, 0.3, 0.6, 0.95, 1.0])
    return lambda prompt, at: chance.choice(kinds) if at < ends_at and chance.random() < share else None


async def weather(seed: int, folder: Path) -> None:
    """One run through one storm, with everything that must hold afterwards."""
    chance = random.Random(seed)
    ends_at = chance.choice([5.0, 100.0, 400.0])
    can_stop = chance.random() < 0.3
    models = ["script/m", "script/n"][: chance.randint(1, 2)]
    providers = {
        model: ScriptedProvider(storm(chance, ends_at, can_stop=can_stop), lambda: chance.uniform(0.01, 3))
        for model in models
    }
    quotas = [None, None, 60, 600]
    lanes = [
        Lane(m, rpm=chance.choice(quotas), tpm=chance.choice([None, 20_000]), concurrency=chance.choice([1, 4, 32]))
        for m in models
    ]
    calls = [
        Call(chance.choice(models), f"prompt {chance.randrange(50)}", tag=number)
        for number in range(chance.choice([0, 1, 10, 80]))
    ]
    limit = RetryPolicy().attempts_max
    seen: list[Outcome] = []
    stopped: set[str] = set()
    async with engine_over(providers, folder, *lanes, seed=seed) as bench:
        sink = ListSink()
        try:
            async for outcome in run_calls(bench.scheduler, iter(calls), sink):
                assert outcome in sink.safe
                seen.append(outcome)
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.uniform(0, 5))
        except Stopped as error:
            stopped = {stop.lane for stop in error.stops}
        for model in bench.scheduler.routes:
            assert bench.lane(model).in_flight == providers[model].in_flight == 0
        assert bench.purse.reserved == pytest.approx(0.0)
    assert len(asyncio.all_tasks()) == 1
    assert sink.safe == sink.taken and Counter(id(o) for o in seen) == Counter(id(o) for o in sink.taken)
    tags = [outcome.call.tag for outcome in seen]
    assert len(tags) == len(set(tags))
    missing = [call for call in calls if call.tag not in set(tags)]
    assert {call.model for call in missing} <= stopped
    attempts: Counter[tuple[str, str]] = Counter()
    for outcome in seen:
        assert outcome.call == calls[outcome.call.tag]
        assert (outcome.reply is None) != (outcome.failure is None)
        attempts[outcome.call.model, str(outcome.call.input)] += outcome.attempts
        assert outcome.maybe_billed <= 3
    for model, provider in providers.items():
        uncounted = Counter(prompt for prompt, fault in provider.faults if is_uncounted(fault))
        for prompt, sends in provider.counts().items():
            asked = [call.tag for call in calls if call.model == model and call.input == prompt]
            ends = sum(not outcome.cached for outcome in seen if outcome.call.tag in asked)
            # One end of a call takes at most the configured attempts; one may have been pending when a lane stopped.
            assert sends - uncounted[prompt] <= limit * (ends + 1)
            if model not in stopped:
                assert sends == attempts[model, prompt]


def is_uncounted(fault: Fault) -> bool:
    return fault.action in ("wait", "confirm") or (fault.action == "throttle" and fault.retry_after_s is not None)


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_in_any_storm_every_run_ends_and_no_call_is_lost_or_doubled(first_seed: int, tmp_path: Path) -> None:
    for seed in range(first_seed, first_seed + 50):
        try:
            run_virtually(weather(seed, tmp_path / str(seed)))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_call_that_always_fails_is_tried_as_often_as_configured(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: SERVER_ERROR if prompt == "bad" else None)

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path, policy=RetryPolicy(attempts_max=4)) as bench:
            return await bench.scheduler.ask(Call(M, "bad"))

    outcome = run_virtually(main())
    assert (outcome.status, outcome.attempts, len(provider.arrivals)) == ("server_error", 4, 4)
    gaps = [b[0] - a[0] for a, b in zip(provider.arrivals, provider.arrivals[1:], strict=False)]
    assert all(1.0 <= gap <= 60.2 for gap in gaps)


def test_a_call_that_may_have_been_billed_is_repeated_at_most_twice(tmp_path: Path) -> None:
    cut = Fault("incomplete", "cut", "retry", is_billed_maybe=True)
    provider = ScriptedProvider(lambda prompt, at: cut)

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path) as bench:
            return await bench.scheduler.ask(Call(M, "a"))

    outcome = run_virtually(main())
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == ("incomplete", 3, 3)


def test_a_call_that_alone_is_forbidden_ends_while_the_others_go_on(tmp_path: Path) -> None:
    """The confirming probe of another call succeeds, so the key is alive; this call must not be sent for ever."""
    forbidden = Fault("rejected", "403 by a filter", "confirm", 403)
    provider = ScriptedProvider(lambda prompt, at: forbidden if prompt == "prompt 5" else None, latency_s=0.1)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=8)) as bench:
            with contextlib.suppress(Stopped):
                found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(3000))])

    run_virtually(main())
    assert provider.counts()["prompt 5"] <= 1 + RetryPolicy().attempts_max


def test_an_attempt_that_breaks_in_an_unforeseen_way_harms_no_other_call(tmp_path: Path) -> None:
    class Broken(ScriptedProvider):
        async def send(self, request: Request) -> Response:
            response = await super().send(request)
            if request.body == b"prompt 3":
                raise ZeroDivisionError("in a provider's code")
            return response

    provider = Broken()

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path) as bench:
            return [outcome async for outcome in run_calls(bench.scheduler, prompts(20))]

    found = {outcome.call.input: outcome for outcome in run_virtually(main())}
    assert Counter(outcome.status for outcome in found.values()) == {"ok": 19, "incomplete": 1}
    failure = found["prompt 3"].failure
    assert failure is not None and failure.detail == "ZeroDivisionError: in a provider's code"


def outage(share: float, begin: float, end: float, tmp_path: Path) -> tuple[ScriptedProvider, Counter[str], float]:
    chance = random.Random(9)
    failing = lambda prompt, at: SERVER_ERROR if begin <= at < end and chance.random() < share else None  # noqa: E731
    provider = ScriptedProvider(failing, latency_s=lambda: chance.uniform(0.5, 1.5))
    kinds: Counter[str] = Counter()

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=600, concurrency=32)) as bench:
            async for outcome in run_calls(bench.scheduler, prompts(6000)):
                kinds[outcome.status] += 1
            return asyncio.get_running_loop().time()

    return provider, kinds, run_virtually(main())


def repeats(provider: ScriptedProvider, begin: float, end: float) -> tuple[int, int]:
    """Sends between two times, and how many of them were not the first of their prompt."""
    seen: set[str] = set()
    sends = again = 0
    for at, prompt in provider.arrivals:
        if begin <= at < end:
            sends += 1
            again += prompt in seen
        seen.add(prompt)
    return sends, again


def test_in_an_outage_of_ten_minutes_retries_stay_a_tenth_of_the_traffic_and_nothing_is_lost(tmp_path: Path) -> None:
    provider, kinds, ended = outage(1.0, 120, 715, tmp_path)
    assert sum(kinds.values()) == 6000
    assert kinds["ok"] >= 5980
    total, again = repeats(provider, 0, ended)
    assert again <= 0.1 * total
    # Ninety percent of the quota within five minutes of its end.
    assert repeats(provider, 715 + 300, 715 + 360)[0] >= 0.9 * 600 or ended < 715 + 360


def test_with_most_calls_failing_retries_are_held_to_the_budget_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    provider, kinds, ended = outage(0.6, 120, 720, tmp_path)
    assert sum(kinds.values()) == 6000
    sends, again = repeats(provider, 120, 720)
    policy = RetryPolicy()
    # A tenth of the attempts, what was saved up before, and one every ten seconds so that every run ends.
    assert again <= policy.budget_share * sends + 10 * policy.budget_floor + 600 / policy.probe_every_s
    assert repeats(provider, 720 + 300, 720 + 360)[0] >= 0.9 * 600 or ended < 720 + 360


# One iterator, several lanes


def mixed(count: int, *models: str) -> Iterator[Call]:
    return (Call(models[number % len(models)], f"prompt {number}") for number in range(count))


def test_a_slow_lane_blocks_another_only_at_the_look_ahead(tmp_path: Path) -> None:
    slow, quick = ScriptedProvider(latency_s=1000.0), ScriptedProvider(latency_s=0.01)

    async def main() -> None:
        lanes = (Lane("script/slow", concurrency=2), Lane("script/quick", concurrency=4))
        async with engine_over({"script/slow": slow, "script/quick": quick}, tmp_path, *lanes) as bench:
            async for _ in run_calls(bench.scheduler, mixed(2000, "script/slow", "script/quick")):
                if asyncio.get_running_loop().time() > 900:
                    break

    run_virtually(main())
    early = [at for at, _ in quick.arrivals if at < 900]
    assert LOOK_AHEAD <= len(early) <= LOOK_AHEAD + 8


def test_a_stopped_lane_does_not_block_another(tmp_path: Path) -> None:
    dead, quick = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT), ScriptedProvider(latency_s=0.01)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/dead": dead, "script/quick": quick}, tmp_path) as bench:
            with pytest.raises(Stopped, match="insufficient_quota") as stopped:
                async for outcome in run_calls(bench.scheduler, mixed(4000, "script/dead", "script/quick")):
                    found.append(outcome)
            assert [stop.lane for stop in stopped.value.stops] == ["script/dead"]

    run_virtually(main())
    assert len(found) == 2000 and all(outcome.call.model == "script/quick" for outcome in found)
    assert len(dead.arrivals) <= 8


def test_the_calls_of_one_lane_are_found_behind_those_of_another_that_stopped_at_once(tmp_path: Path) -> None:
    dead, quick = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT), ScriptedProvider()
    found: list[Outcome] = []

    async def main() -> None:
        calls = [*prompts(20_000, "script/dead"), *prompts(500, "script/quick")]
        ways: list[Iterable[Call] | AsyncIterable[Call]] = [calls, slowly(iter(calls), 0.0)]
        for number, given in enumerate(ways):
            async with engine_over({"script/dead": dead, "script/quick": quick}, tmp_path / str(number)) as bench:
                with pytest.raises(Stopped) as stopped:
                    async for outcome in run_calls(bench.scheduler, given):
                        found.append(outcome)
                assert [stop.lane for stop in stopped.value.stops] == ["script/dead"]

    run_virtually(main())
    assert len(found) == 1000 and all(outcome.reply is not None for outcome in found)


def test_an_endless_iterator_of_a_stopped_lane_ends_the_run_too(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT)
    call = Call(M, "a")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, iter(lambda: call, None)):
                    pass

    run_virtually(main())


async def slowly(calls: Iterator[Call], pause_s: float = 0.01) -> AsyncIterator[Call]:
    for call in calls:
        await asyncio.sleep(pause_s)
        yield call


def test_an_async_iterable_is_read_lazily_by_all_lanes(tmp_path: Path) -> None:
    providers = {"script/a": ScriptedProvider(latency_s=0.5), "script/b": ScriptedProvider(latency_s=0.01)}

    async def main() -> list[Outcome]:
        async with engine_over(providers, tmp_path) as bench:
            results = run_calls(bench.scheduler, slowly(mixed(500, "script/a", "script/b", "script/b")))
            return [outcome async for outcome in results]

    found = run_virtually(main())
    assert sorted(int(str(o.call.input).split()[1]) for o in found) == list(range(500))


def test_no_calls_are_a_finished_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            assert [outcome async for outcome in run_calls(bench.scheduler, [])] == []
            assert [outcome async for outcome in run_calls(bench.scheduler, slowly(iter([])))] == []

    run_virtually(main())


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("after", [0, 1, 30])
def test_an_iterator_that_raises_ends_the_run_with_its_error_and_loses_nothing_that_was_sent(
    after: int, is_async: bool, tmp_path: Path
) -> None:
    provider = ScriptedProvider(latency_s=5.0)
    found: list[Outcome] = []
    sink = ListSink()

    def broken() -> Iterator[Call]:
        yield from prompts(after)
        raise RuntimeError("the caller's own mistake")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=64)) as bench:
            calls = slowly(broken()) if is_async else broken()
            with pytest.raises(RuntimeError, match="the caller's own mistake"):
                async for outcome in run_calls(bench.scheduler, calls, sink):
                    found.append(outcome)
            assert bench.lane(M).in_flight == provider.in_flight == 0

    run_virtually(main())
    assert len(found) == len(sink.safe) == len(provider.arrivals) == after


def test_a_consumer_that_stops_early_leaves_nothing_in_flight(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: random.uniform(0.1, 20))

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=6000, concurrency=50)) as bench:
            results = run_calls(bench.scheduler, prompts(10**9))
            async for _ in results:
                break
            await results.aclose()  # type: ignore[attr-defined]
            assert bench.lane(M).in_flight == provider.in_flight == 0
            assert len(asyncio.all_tasks()) == 1
            sends = len(provider.arrivals)
            await asyncio.sleep(100)
            assert len(provider.arrivals) == sends

    run_virtually(main())


def test_a_slow_consumer_bounds_how_far_the_iterator_is_read(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.01)
    read = 0

    def counted() -> Iterator[Call]:
        nonlocal read
        for call in prompts(100_000):
            read += 1
            yield call

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=16)) as bench:
            results = run_calls(bench.scheduler, counted())
            for taken in range(1, 4):
                await anext(results)
                await asyncio.sleep(1000)
                assert read <= taken * (OUTLET_SIZE + 16 + 1)
            await results.aclose()  # type: ignore[attr-defined]

    run_virtually(main())
    assert read > OUTLET_SIZE


def test_a_fast_consumer_sees_each_outcome_as_it_comes(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: 1.0)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            seen = 0
            async for _ in run_calls(bench.scheduler, prompts(20)):
                seen += 1
                assert asyncio.get_running_loop().time() == pytest.approx(seen, abs=0.1)

    run_virtually(main())


# Order, ends


def test_an_answer_is_committed_then_written_then_its_slot_is_freed_then_seen(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    written: list[tuple[bool, int]] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            committed = Cache(tmp_path)  # sees commits alone, not what the other cache still holds

            def probe(outcome: Outcome) -> None:
                is_committed = committed.get(bytes.fromhex(outcome.key)) is not None
                written.append((is_committed, bench.lane(M).in_flight))

            sink = ListSink(probe)
            async for outcome in run_calls(bench.scheduler, prompts(30), sink):
                assert outcome in sink.safe
            committed.close()

    run_virtually(main())
    assert written == [(True, 1)] * 30


def test_cached_outcomes_are_safe_before_a_slow_consumer_sees_them(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    # Every seventh is new: who brings it in goes on with stored ones while the consumer is still looking.
    calls = [Call(M, f"prompt {number if number % 7 == 0 else number % 300}", tag=number) for number in range(3000)]

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            async for _ in run_calls(bench.scheduler, calls[:300]):
                pass
            sink = ListSink()
            seen = 0
            async for outcome in run_calls(bench.scheduler, calls, sink):
                assert any(outcome is one for one in sink.safe)
                seen += 1
                await asyncio.sleep(0.01)
            assert seen == 3000

    run_virtually(main())


def test_a_sink_that_is_full_stops_sending_and_keeps_what_was_in_flight(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: random.uniform(1, 3))
    found: list[Outcome] = []
    sink = ListSink()

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=20)) as bench:
            with pytest.raises(LocalFault, match="disk full"):
                async for outcome in run_calls(bench.scheduler, prompts(10_000), sink):
                    found.append(outcome)
                    if len(found) == 50:
                        sink.fault = LocalFault("disk full")

    run_virtually(main())
    assert len(found) == len(sink.safe) == len(provider.arrivals) <= 50 + 20 + 20


def test_an_interruption_drains_what_is_in_flight_and_leaves_the_rest_pending(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=5.0)
    found: list[Outcome] = []

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=10)) as bench:
            asyncio.get_running_loop().call_later(7, bench.scheduler.halt, "interrupted", "SIGINT")
            with pytest.raises(Stopped) as stopped:
                async for outcome in run_calls(bench.scheduler, prompts(1000)):
                    found.append(outcome)
            assert [stop.reason for stop in stopped.value.stops] == ["interrupted"]
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, prompts(1)):
                    pass
            return asyncio.get_running_loop().time()

    assert run_virtually(main()) < 10.5
    assert len(found) == len(provider.arrivals) == 20


@pytest.mark.parametrize("first", [0, 3])
def test_an_interruption_does_not_wait_for_a_source_that_is_silent(first: int, tmp_path: Path) -> None:
    async def silent() -> AsyncIterator[Call]:
        for call in prompts(first):
            yield call
        await asyncio.Event().wait()

    async def main() -> int:
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            asyncio.get_running_loop().call_later(5, bench.scheduler.halt, "interrupted", "SIGINT")
            found = 0
            with contextlib.suppress(Stopped):
                async for _ in run_calls(bench.scheduler, silent()):
                    found += 1
            return found

    assert run_virtually(main()) == first


def test_backing_off_calls_are_pending_after_an_interruption(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: SERVER_ERROR)

    async def main() -> tuple[int, float]:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=8)) as bench:
            asyncio.get_running_loop().call_later(0.5, bench.scheduler.halt, "interrupted", "SIGINT")
            found = 0
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, prompts(100)):
                    found += 1
            return found, asyncio.get_running_loop().time()

    found, ended = run_virtually(main())
    assert found == 0
    assert ended == pytest.approx(0.5, abs=0.2)


# Memory


class Lean(ScriptedProvider):
    """Answers at once and remembers nothing."""

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(200, b"ok")


def anonymous_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


def test_two_hundred_thousand_calls_need_no_more_memory_than_twenty_thousand(tmp_path: Path) -> None:
    marks: list[int] = []

    async def main() -> None:
        async with engine_over({M: Lean()}, tmp_path, Lane(M, concurrency=64)) as bench:
            count = 0
            async for _ in run_calls(bench.scheduler, prompts(200_000)):
                count += 1
                if count % 20_000 == 0:
                    marks.append(anonymous_kib())

    asyncio.run(main())
    assert len(marks) == 10
    assert marks[-1] <= marks[0] * 1.1
