"""Several processes on one cache: together they pay once for each answer, whichever verb asks and whoever is killed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from batches import rows_of, text_of, write_sound
from command_line import SMALL, SMALL_PROMPTS, Done, Provider, finish, ids_of, run_command, scores_of, start
from gateways import ANN, Answer, gateway_before, post, question, until

from millstream.configuration.gateway_settings import CallerSettings, GatewaySettings
from millstream.fixtures.provider import Latency, ModelProvider, Options

pytestmark = pytest.mark.process

CONCURRENCY = 4


def run(provider: Provider, name: str, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", name, "--no-progress", "--no-report")
    return ("run", "millstone", "--model", "sim/open", *where, "--concurrency", str(CONCURRENCY), *more)


def await_waiting(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until a run waits for another's answers: half a second after it began, it has looked for its first prompts."""
    while not (folder / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)
    assert process.poll() is None


@pytest.mark.needs_benchmark("millstone")
def test_three_runs_of_one_grid_at_once_pay_for_each_prompt_once(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.05")
    size = ("--limit", "2", "--templates", "2", "--trials", "2")  # 2 issues × 2 templates × 11 configurations × 2
    names = ("one", "two", "three")
    started = [start(tmp_path, *run(provider, name, *size)) for name in names]
    ended = [finish(process) for process in started]
    assert [done.code for done in ended] == [0, 0, 0], ended
    assert provider.calls() == 2 * 2 * 11 * 2 == 88
    for name in names:
        assert len(set(ids_of(tmp_path / name))) == 88
        assert scores_of(tmp_path / name) == scores_of(tmp_path / "one")


@pytest.mark.needs_benchmark("millstone")
def test_of_a_run_that_is_killed_another_asks_again_only_what_was_in_flight(provider: Provider, tmp_path: Path) -> None:
    # Nothing is answered before the kill.
    provider.set_faults("slow_body=30")
    killed = start(tmp_path, *run(provider, "killed", *SMALL))
    provider.await_calls(CONCURRENCY)
    waiting = start(tmp_path, *run(provider, "waiting", *SMALL))
    await_waiting(tmp_path / "waiting", waiting)
    assert provider.calls() == CONCURRENCY
    provider.set_faults()
    killed.send_signal(signal.SIGKILL)
    finish(killed)
    done = finish(waiting)
    assert done.code == 0, done.err
    assert len(set(ids_of(tmp_path / "waiting"))) == SMALL_PROMPTS
    assert provider.calls() == SMALL_PROMPTS + CONCURRENCY


@pytest.mark.needs_benchmark("millstone")
def test_an_interrupt_ends_a_run_that_waits_for_anothers_answers_at_once(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=30")
    holder = start(tmp_path, *run(provider, "holder", *SMALL))
    provider.await_calls(CONCURRENCY)
    # One worker: it waits for the first prompt, which the holder has.
    waiting = start(tmp_path, *run(provider, "waiting", *SMALL, "--concurrency", "1"))
    await_waiting(tmp_path / "waiting", waiting)
    waiting.send_signal(signal.SIGINT)
    done = finish(waiting, 10.0)  # calls in flight would be waited for up to 30 s
    assert done.code == 130, done.err
    holder.send_signal(signal.SIGKILL)
    finish(holder)
    assert provider.calls() == CONCURRENCY


def test_two_batches_of_the_same_lines_pay_for_each_once(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.05")
    write_sound(tmp_path / "in.jsonl", 40)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--concurrency", str(CONCURRENCY))
    started = [start(tmp_path, "batch", "in.jsonl", out, *where) for out in ("a.jsonl", "b.jsonl")]
    ended: list[Done] = [finish(process) for process in started]
    assert [done.code for done in ended] == [0, 0], ended
    assert provider.calls() == 40
    texts = [{row["custom_id"]: text_of(row) for row in rows_of(tmp_path / out)} for out in ("a.jsonl", "b.jsonl")]
    assert len(texts[0]) == 40 and texts[0] == texts[1]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_two_gateways_that_are_asked_the_same_pay_once_and_answer_the_same(tmp_path: Path, is_streamed: bool) -> None:
    async def main() -> tuple[list[Answer], int]:
        async with (
            ModelProvider(Options(latency=Latency(a=0.3))) as provider,
            gateway_before(provider.base_url, tmp_path) as one,
            gateway_before(provider.base_url, tmp_path) as other,
        ):
            asked = question(stream=True) if is_streamed else question()
            found = await asyncio.gather(*(post(at.port, asked, X_Millstream_Trial="0") for at in (one, other)))
            return found, provider.log.total

    answers, paid = asyncio.run(asyncio.wait_for(main(), 30))
    assert paid == 1
    assert [answer.status for answer in answers] == [200, 200]
    if is_streamed:
        texts = [streamed_text(answer.body) for answer in answers]
        assert texts[0] == texts[1] != ""
    else:
        assert sorted(answer.is_cached for answer in answers) == [False, True]
        assert answers[0].json["choices"] == answers[1].json["choices"]


def test_a_caller_has_its_place_and_its_money_while_another_gateway_is_asked_for_it(tmp_path: Path) -> None:
    ann = GatewaySettings(callers=(CallerSettings("ann", "ANN", concurrency=1, max_cost=0.01),))

    async def main() -> tuple[list[Answer], int, float]:
        async with (
            ModelProvider(Options(latency=Latency(a=0.5))) as provider,
            gateway_before(provider.base_url, tmp_path, ann) as one,
            gateway_before(provider.base_url, tmp_path, ann) as other,
        ):
            asked = [asyncio.create_task(post(one.port, question(), x_api_key=ANN, X_Millstream_Trial="0"))]
            await until(lambda: provider.log.total == 1)
            asked.append(asyncio.create_task(post(other.port, question(), x_api_key=ANN, X_Millstream_Trial="0")))
            await asyncio.sleep(0.2)
            there, here = one.callers["ann"], other.callers["ann"]
            assert there.budget is not None and here.budget is not None
            assert (there.in_flight, here.in_flight) == (1, 0)
            assert there.budget.reserved > 0.0 == here.budget.reserved
            return await asyncio.gather(*asked), provider.log.total, here.budget.own

    answers, paid, spent = asyncio.run(asyncio.wait_for(main(), 30))
    assert [answer.status for answer in answers] == [200, 200]
    assert [answer.is_cached for answer in answers] == [False, True]
    assert (paid, spent) == (1, 0.0)


def test_a_batch_in_live_mode_shares_nothing_and_takes_no_lease(tmp_path: Path, provider: Provider) -> None:
    write_sound(tmp_path / "in.jsonl", 3)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    assert run_command(tmp_path, "batch", "in.jsonl", "out.jsonl", "--mode", "live", *where).code == 0
    assert not list((tmp_path / "cache").glob("leases*"))
    assert run_command(tmp_path, "batch", "in.jsonl", "other.jsonl", *where).code == 0
    assert list((tmp_path / "cache").glob("leases*")) and provider.calls() == 6


def streamed_text(body: bytes) -> str:
    events = body.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    choices = [json.loads(event.removeprefix(b"data: "))["choices"] for event in events[:-2]]
    return "".join(choice[0]["delta"].get("content") or "" for choice in choices if choice)
