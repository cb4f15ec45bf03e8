"""What this program says that calls cost is what a provider of its own (caching_server) bills, to the cent: reads of
its cache, writes for five minutes and an hour, tiers, thinking, long prompts. And no limit is passed, nor left unused.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from billed_programs import KINDS, asked, run_and_kill
from caching_calls import drawn, settings_of
from caching_server import CachingServer
from command_line import environment
from msgspec import structs
from torture import SEED, record, times

import millstream as ms
from millstream.configuration import options
from millstream.engine.attempts.money import worst_cost
from millstream.engine.estimate import TokenEstimate
from millstream.providers.access import accesses
from millstream.providers.table import PROVIDERS, TIERS

CALLS = times(1_200, 10_000)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", KINDS)
def test_every_bill_is_ours_to_the_cent(tmp_path: Path, protocol: str) -> None:
    chance, count = Random(SEED), CALLS // len(KINDS)
    with CachingServer(SEED) as server:
        calls = [drawn(protocol, number, chance) for number in range(count)]
        outcomes, spent, at_worst = asked(settings_of(server.port, protocol, tmp_path), calls)
        assert len(outcomes) == server.calls == count and at_worst == 0
        assert spent == pytest.approx(server.bill, abs=1e-9) and server.bill > 0.1
        usages = [outcome.reply.usage for outcome in outcomes if outcome.reply is not None]
        assert all(usage is not None and usage.reasoning for usage in usages)
        kinds = ("cached_input",) if protocol == "gemini" else ("cached_input", "cache_write_5m")
        for kind in (*kinds, "cache_write_1h") if protocol == "messages" else kinds:
            assert any(getattr(usage, kind) for usage in usages)
        assert len(server.tiers) > 1
    record("11", count, count, f"{protocol}: ${server.bill:.4f} was billed and ${spent:.4f} counted", f"{SEED}")


@pytest.mark.parametrize("cap", [0.01, 0.4])
@pytest.mark.parametrize("protocol", ["chat", "messages"])
def test_a_limit_holds_at_the_dearest_price_and_is_used(tmp_path: Path, protocol: str, cap: float) -> None:
    chance = Random(SEED)
    with CachingServer(SEED) as server:
        calls = (drawn(protocol, number, chance) for number in range(6_000))
        # Calls of a size at which a twentieth of the limit is more than one.
        fit = [call for call in calls if len(str(call.input)) < 1_200]
        settings = settings_of(server.port, protocol, tmp_path, max_cost=cap, lanes=(ms.Lane("lab/m", concurrency=4),))
        _, spent, _ = asked(settings, fit)
        assert 0 < server.bill <= spent + 1e-9 <= cap + 2e-9
        assert server.bill >= 0.95 * cap or cap < 0.05
    record("11", 1, 1, f"of a limit of ${cap} ${server.bill:.4f} was billed", f"{SEED}")


PROGRAM = """
import asyncio, sys
from pathlib import Path
from typing import Any
from random import Random
import millstream as ms
sys.path.insert(0, sys.argv[1])
from caching_calls import drawn, settings_of

async def main():
    protocol, port, cap, seed = sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
    chance = Random(seed)
    more = {"max_cost": cap, "budget": "money.budget", "tier": "flex-then-standard" if protocol == "chat" else None}
    settings = settings_of(port, protocol, Path("cache"), **more)
    is_named = protocol != "chat"
    calls = (drawn(protocol, number, chance, names_tier=is_named) for number in range(4_000))
    async with ms.Engine(settings=settings) as engine:
        async for outcome in engine.run(calls):
            pass

try:
    asyncio.run(main())
except ms.Stopped as stopped:
    sys.exit(str(stopped))
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("protocol", KINDS)
def test_no_kill_makes_a_bill_of_reads_writes_and_tiers_pass_its_limit(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    chance, cap, kills = Random(SEED), 0.6, times(2, 8)
    place = str(Path(__file__).parents[1] / "support")
    with CachingServer(SEED, full=0.3 if protocol == "chat" else 0.0) as server:
        words = (protocol, str(server.port), str(cap), str(SEED))
        command = [sys.executable, "-P", "program.py", place, *words]
        for _ in range(kills):
            run_and_kill(tmp_path, command, server, chance.randint(1, 40))
        subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=False)
        assert 0 < server.bill <= cap
    record("11", kills, kills, f"{protocol}: of a limit of ${cap} at most ${server.bill:.4f} was billed", f"{SEED}")


def test_what_flex_has_no_room_for_or_is_late_with_is_sent_at_standard(tmp_path: Path) -> None:
    with CachingServer(SEED, full=0.4, slow=0.05) as server:
        lane = ms.Lane("lab/m", concurrency=16, timeout_s=1.0)
        settings = settings_of(server.port, "chat", tmp_path, lanes=(lane,), tier="flex-then-standard", max_cost=5.0)
        calls = [ms.Call("lab/m", f"{number}: for or against?", max_tokens=100) for number in range(200)]
        outcomes, spent, _ = asked(settings, calls)
        assert len(outcomes) == 200 and all(outcome.status == "ok" for outcome in outcomes)
        tiers = [outcome.reply.tier for outcome in outcomes if outcome.reply is not None]
        assert tiers.count("default") == server.refused + server.late > 40
        assert tiers.count("flex") == 200 - tiers.count("default") == server.tiers["flex"] - server.late
        # A late answer may have been billed, so it counts at its worst.
        assert server.bill <= spent + 1e-9
        again, _, _ = asked(structs.replace(settings, tier="priority"), calls)
        assert all(outcome.cached for outcome in again)


@pytest.mark.parametrize(("tier", "times_usual"), [("flex", 0.5), ("standard", 1.0), ("priority", 2.0)])
@pytest.mark.parametrize("protocol", ["chat", "responses", "gemini"])
def test_a_tier_is_asked_for_and_billed_and_is_in_no_key(
    tmp_path: Path, protocol: str, tier: str, times_usual: float
) -> None:
    calls = [ms.Call("lab/m", f"{number}: for or against?", max_tokens=100) for number in range(20)]
    with CachingServer(SEED, downgraded=0.0) as server:
        usual, spent, _ = asked(settings_of(server.port, protocol, tmp_path / "a"), calls)
        before = server.bill
        outcomes, dollars, _ = asked(settings_of(server.port, protocol, tmp_path / "b", tier=tier), calls)
        assert dollars == pytest.approx(server.bill - before) == pytest.approx(times_usual * spent)
        assert {outcome.key for outcome in outcomes} == {outcome.key for outcome in usual}


def test_a_tier_that_a_provider_does_not_sell_and_one_without_a_price_are_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    assert options.TIERS == TIERS
    call = ms.Call("lab/m", "For or against?", max_tokens=100)
    with CachingServer(SEED) as server:
        with pytest.raises(ms.ConfigurationError, match="asked for the tier flex; known are standard, priority"):
            ms.Engine(settings=settings_of(server.port, "messages", tmp_path, tier="flex"))
        with pytest.raises(ms.ConfigurationError, match="tier 'cheap' is none of standard, flex"):
            settings_of(server.port, "chat", tmp_path, tier="cheap")
        settings = settings_of(server.port, "chat", tmp_path, max_cost=1.0)
        told = structs.replace(call, extra={"service_tier": "ultrafast"})
        (refused,), _, _ = asked(settings, [told])
        assert refused.failure is not None and "tiers under" in refused.failure.detail
        bare = structs.replace(settings, prices={"lab/m": ms.Price(1.0, 1.0)}, tier="priority")
        (refused,), _, _ = asked(bare, [call])
        assert refused.failure is not None and "tiers under" in refused.failure.detail
        assert server.calls == 0


@pytest.mark.parametrize("cap", [None, 0.04])
def test_a_price_that_rises_while_a_program_runs_is_billed_from_its_day_on_and_reserved_from_the_day_before(
    tmp_path: Path, cap: float | None
) -> None:
    # The list's price of Argon is this server's until the end of November, and then twice that.
    edge = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    calls = [ms.Call("gemini/gemini-4-argon", f"{number}: for or against?", max_tokens=100) for number in range(30)]
    with CachingServer(SEED) as server:
        row = structs.replace(PROVIDERS["gemini"], base_url=f"http://127.0.0.1:{server.port}", key_variable=None)
        times_of_calls = iter((edge - 2 * 86_400, edge - 60.0, edge + 60.0, edge + 86_400))
        now = [edge - 3 * 86_400]
        settings = ms.Settings(
            providers={"gemini": row}, environment={}, cache=tmp_path, max_cost=cap, clock=lambda: now[0]
        )

        async def moved() -> tuple[list[float], list[float]]:
            ratios, bounds = [], []
            async with ms.Engine(settings=settings) as engine:
                for at, few in zip(times_of_calls, (calls[:5], calls[5:10], calls[10:15], calls[15:]), strict=True):
                    now[0] = at
                    spent, billed = engine.budget.spent, server.bill
                    try:
                        async for _ in engine.run(few):
                            pass
                    except ms.Stopped:
                        pass
                    route = engine.scheduler.routes.lasting[few[0].model]
                    bounds.append(max(bound.dollars(0) for bound in route.cost_bounds(few[0])))
                    ratios.append((engine.budget.spent - spent) / (server.bill - billed))
                assert cap is None or engine.budget.spent <= cap + 1e-9
            return ratios, bounds

        ratios, bounds = asyncio.run(moved())
        assert ratios == pytest.approx([1.0, 1.0, 2.0, 2.0])
        assert [bound / bounds[0] for bound in bounds] == pytest.approx([1.0, 2.0, 2.0, 2.0], rel=0.05)


@pytest.mark.parametrize(
    ("model", "address", "tier"),
    [
        ("openai/gpt-6-sol", "https://api.openai.com/v1", None),
        ("openai/gpt-6-sol", "https://eu.api.openai.com/v1", None),
        ("openai-responses/gpt-6-sol", "https://us.api.openai.com/v1", None),
        ("azure/gpt-6-sol", "https://mine.openai.azure.com", None),
        ("openai/gpt-6-sol", "http://127.0.0.1:9/v1", "auto"),
        ("openai/gpt-6-sol", "https://proxy.example.com/v1", "auto"),
        ("vllm/mine", "http://127.0.0.1:9/v1", None),
        ("gemini/gemini-4-neon", "http://127.0.0.1:9", None),
    ],
)
@pytest.mark.parametrize("limit", [{"max_cost": 1.0}, {"has_payers": True}], ids=["of all", "of a caller"])
def test_under_a_limit_an_accounts_default_tier_is_overruled_where_that_is_known_to_be_taken_else_reserved(
    model: str, address: str, tier: str | None, limit: dict[str, Any]
) -> None:
    price = ms.Price(1.0, 5.0, tiers={"flex": 0.5, "priority": 2.0})
    free = ms.Settings(base_url=address, environment={}, needs_keys=False, prices={model: price})
    capped = structs.replace(free, **limit)
    (reached,), (usual,) = accesses(model, capped.means), accesses(model, free.means)
    is_named = address.startswith("https") and tier is None
    assert reached.target.tiers == (({"service_tier": "default"},) if is_named else ()) and usual.target.tiers == ()
    bounds = []
    for settings in (free, capped):
        found = settings.price_table().get(model)
        assert found is not None
        bounds.append(worst_cost(ms.Call(model, "For or against?", max_tokens=100), found, TokenEstimate()) or 0.0)
    assert bounds[1] / bounds[0] == (2.0 if tier == "auto" else 1.0)


def test_no_default_of_an_account_passes_a_limit_at_an_address_of_ones_own(tmp_path: Path) -> None:
    with CachingServer(SEED, default="priority") as server:
        settings = settings_of(server.port, "chat", tmp_path, max_cost=0.05, lanes=(ms.Lane("lab/m", concurrency=16),))
        calls = [ms.Call("lab/m", f"{number}: for or against?", max_tokens=100) for number in range(200)]
        _, spent, _ = asked(settings, calls)
        assert 0 < server.bill <= spent + 1e-9 <= 0.05 + 2e-9


def test_flex_without_a_tier_in_the_answer_is_said_to_be_at_its_worst_and_makes_no_other_call_dearer(
    tmp_path: Path,
) -> None:
    calls = [ms.Call("lab/m", f"{number}: for or against?", max_tokens=100) for number in range(20)]

    async def spent_at(server: CachingServer) -> tuple[float, float, float]:
        settings = settings_of(server.port, "chat", tmp_path, max_cost=1.0, tier="flex")
        async with ms.Engine(settings=settings) as engine:
            async for _ in engine.run(calls):
                pass
            return engine.budget.spent, engine.budget.at_worst, engine.budget.overrun

    with CachingServer(SEED, says_tier=False) as server:
        spent, at_worst, overrun = asyncio.run(spent_at(server))
        assert spent == at_worst == pytest.approx(2 * server.bill) and overrun == 1.0
