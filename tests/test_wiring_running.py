"""How a run of an engine ends: whole, stopped, at a fault of this machine or of the caller's code, or at a signal."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

import millstream as ms
from millstream import wiring
from millstream.engine.fault import LocalFault, Stop, Stopped
from millstream.fixtures.latency import parse_latency
from millstream.fixtures.provider import ModelProvider, Options
from millstream.wiring.running import RunEnd, running

CALL = ms.Call("openai/open", "A or B?")
STOP, OTHER = Stop("a", "redirect", "a moved"), Stop("b", "budget", "b is dear")
FAULT = LocalFault("no room")


def engine_to(provider: ModelProvider, cache: Path) -> ms.Engine:
    """An engine of a live run: what it stored is forgotten once it is whole."""
    environment = {"OPENAI_API_KEY": "sk-1"}
    return ms.Engine(
        settings=wiring.Settings(
            environment=environment, cache=cache, base_url=provider.base_url, mode="live", run_id="run"
        )
    )


@pytest.mark.parametrize(
    ("end", "is_pending", "has_failures", "code"),
    [
        (RunEnd(), False, False, 0),
        (RunEnd(), False, True, 3),
        (RunEnd(), True, True, 4),
        (RunEnd(fault=FAULT), True, True, 5),
        (RunEnd(fault=FAULT, signal=15), True, True, 143),
    ],
)
def test_the_gravest_reason_is_the_exit_code(end: RunEnd, is_pending: bool, has_failures: bool, code: int) -> None:
    assert end.exit_code(is_pending=is_pending, has_failures=has_failures) == code


@pytest.mark.parametrize(
    ("error", "stops", "fault", "sent"),
    [
        (None, (), None, 2),
        (Stopped([STOP]), (STOP, OTHER), None, 1),
        (FAULT, (OTHER,), FAULT, 1),
        (ValueError("a defect"), (), None, 1),
    ],
)
def test_the_end_of_the_block_is_noted_and_what_a_live_run_kept_is_forgotten_once_it_is_whole(
    tmp_path: Path, error: Exception | None, stops: tuple[Stop, ...], fault: LocalFault | None, sent: int
) -> None:
    ends: list[RunEnd] = []

    async def once(provider: ModelProvider, *, raises: bool) -> None:
        engine = engine_to(provider, tmp_path)
        async with running(engine) as end:
            ends.append(end)
            assert (await engine.ask(CALL)).reply is not None
            if raises and error is not None:
                end.stops = stops[-1:]
                raise error

    async def main() -> None:
        async with ModelProvider(Options()) as provider:
            try:
                await once(provider, raises=True)
            except ValueError as passed:
                assert passed is error
            await once(provider, raises=False)
            assert provider.log.total == sent

    asyncio.run(main())
    assert (tuple(ends[0].stops), ends[0].fault, ends[0].signal) == (stops, fault, None)
    assert ends[1] == RunEnd(lost_keys=[])


def test_a_fault_of_opening_is_raised(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")

    async def main() -> None:
        async with ModelProvider(Options()) as provider, running(engine_to(provider, tmp_path / "cache")):
            raise AssertionError("it is not open")

    with pytest.raises(LocalFault):
        asyncio.run(main())


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_lets_calls_in_flight_end_and_a_second_one_drops_them(tmp_path: Path, signals: int) -> None:
    answered: list[ms.Outcome] = []

    def send_signals(provider: ModelProvider) -> None:
        """Sends the signals once the provider has the call."""
        if not provider.log.total:
            asyncio.get_running_loop().call_later(0.01, send_signals, provider)
            return
        for _ in range(signals):
            signal.raise_signal(signal.SIGTERM)

    async def main() -> RunEnd:
        async with ModelProvider(Options(latency=parse_latency("0.5"))) as provider:
            engine = engine_to(provider, tmp_path)
            async with running(engine) as end:
                send_signals(provider)
                answered.append(await engine.ask(CALL))
                await engine.ask(ms.Call("openai/open", "C or D?"))
            return end

    end = asyncio.run(main())
    assert end.signal == signal.SIGTERM and end.exit_code(is_pending=True, has_failures=False) == 143
    assert len(answered) == (signals == 1) and end.maybe_billed == (signals == 2)
    assert [stop.detail for stop in end.stops] == ["interrupted by SIGTERM"] * (signals == 1)
