"""An engine that measures: every call is sent once as it is, nothing is kept, and the lane still counts it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import millstream as ms
from millstream import wiring
from millstream.engine.call import Outcome
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota
from millstream.fixtures.provider import ModelProvider, Options
from millstream.fixtures.provider.quotas import AccountQuota as SimQuota

MODEL = "openai/open"


def settings(folder: Path, base_url: str, **changes: object) -> wiring.Settings:
    given = {"environment": {"OPENAI_API_KEY": "sk-1"}, "cache": folder, "base_url": base_url, "measures": True}
    return wiring.Settings(**{**given, **changes})  # type: ignore[arg-type]


async def asked(folder: Path, base_url: str, calls: list[ms.Call], **changes: object) -> list[Outcome]:
    async with ms.Engine(settings=settings(folder, base_url, **changes)) as engine:
        return list(await asyncio.gather(*map(engine.ask, calls)))


def numbered(count: int) -> list[ms.Call]:
    return [ms.Call(MODEL, f"A or B? {number}") for number in range(count)]


def test_no_answer_is_stored_and_a_stored_one_of_another_run_is_not_taken(tmp_path: Path) -> None:
    async def main() -> None:
        async with ModelProvider(Options()) as provider:
            calls = numbered(3)
            kept = await asked(tmp_path, provider.base_url, calls, measures=False)
            assert [outcome.cached for outcome in kept] == [False] * 3
            for mode in ("live", "record"):
                measured = await asked(tmp_path, provider.base_url, calls, mode=mode)
                assert [(outcome.cached, outcome.attempts) for outcome in measured] == [(False, 1)] * 3
            assert provider.log.total == 9
            with pytest.raises(ms.ConfigurationError, match="mode replay answers some by itself: use live"):
                settings(tmp_path, provider.base_url, mode="replay")
            fresh = [ms.Call(MODEL, f"C or D? {number}") for number in range(3)]
            await asked(tmp_path, provider.base_url, fresh)
            again = await asked(tmp_path, provider.base_url, fresh, measures=False)
            assert [outcome.cached for outcome in again] == [False] * 3 and provider.log.total == 15

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (Options(faults=("server_error",)), "server_error"),
        (Options(faults=("rate_limited_after=30",)), "rate_limited"),
        (Options(faults=("reset_body",)), "incomplete"),
        (Options(quota=SimQuota(requests=1)), "rate_limited"),
    ],
)
def test_what_fails_is_sent_once_and_holds_nothing_up(tmp_path: Path, options: Options, kind: str) -> None:
    async def main() -> None:
        async with ModelProvider(options) as provider:
            outcomes = await asyncio.wait_for(asked(tmp_path, provider.base_url, numbered(8)), 10)
            failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
            assert {failure.kind for failure in failures} == {kind} and len(failures) >= 7
            assert provider.log.total == 8 and all(outcome.attempts == 1 for outcome in outcomes)

    asyncio.run(main())


def test_what_a_measured_provider_tells_slows_down_nobody_now_and_nobody_later(tmp_path: Path) -> None:
    """Its headers tell six a minute, of which none is left after six; it is asked for more all the same."""

    async def main() -> None:
        async with ModelProvider(Options(quota=SimQuota(requests=6))) as provider:
            first = await asyncio.wait_for(asked(tmp_path, provider.base_url, numbered(6)), 10)
            assert all(outcome.reply is not None for outcome in first)
            later = await asyncio.wait_for(asked(tmp_path, provider.base_url, numbered(6)), 10)
            assert {outcome.failure.kind for outcome in later if outcome.failure is not None} == {"rate_limited"}

    asyncio.run(main())


def test_a_quota_that_was_given_still_holds(tmp_path: Path) -> None:
    async def main() -> None:
        async with ModelProvider(Options()) as provider:
            lane = ms.Lane(MODEL, rpm=60)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asked(tmp_path, provider.base_url, numbered(50), lanes=(lane,)), 1.5)
            assert 1 <= provider.log.total <= 4

    asyncio.run(main())


def test_the_last_minute_of_a_measured_lane_is_known_to_the_run_after_it(tmp_path: Path) -> None:
    """Without a declared quota too: a run that has one would else send its whole minute on top."""

    async def main() -> None:
        async with ModelProvider(Options()) as provider:
            measured = await asked(tmp_path, provider.base_url, numbered(40))
            usages = [outcome.reply.usage for outcome in measured if outcome.reply is not None]
            (path,) = (tmp_path / "lanes").glob("*.ledger")
            ledger = Ledger(Quota(), path)
            requests, tokens = ledger.used(asyncio.get_running_loop().time())
            ledger.close()
            assert requests == 40
            assert tokens.total == sum(usage.tokens or 0 for usage in usages if usage is not None)
            lane = ms.Lane(MODEL, rpm=40)
            with pytest.raises(TimeoutError):
                own = [ms.Call(MODEL, f"E or F? {number}") for number in range(5)]
                await asyncio.wait_for(asked(tmp_path, provider.base_url, own, lanes=(lane,), measures=False), 1.0)
            assert provider.log.total == 40

    asyncio.run(main())


def test_a_dead_key_still_stops_its_lane(tmp_path: Path) -> None:
    async def main() -> None:
        async with ModelProvider(Options(keys=("sk-2",))) as provider:
            with pytest.raises(ms.Stopped, match="refuses the key in OPENAI_API_KEY"):
                async with ms.Engine(settings=settings(tmp_path, provider.base_url)) as engine:
                    await engine.ask(ms.Call(MODEL, "A or B?"))
            assert provider.log.total == 2

    asyncio.run(main())
