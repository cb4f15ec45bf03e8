"""One way for every call: identical ones are sent once, and none gets another's answer."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from msgspec import json, structs
from scripted import ScriptedProvider, engine_over
from torture import SEED, record, times
from virtual_time import run_virtually

from millstream.engine.call import Call, Message, Outcome
from millstream.engine.endpoint import Fault, Request
from millstream.engine.fault import Stopped

M = "script/m"
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


# Identical calls


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
