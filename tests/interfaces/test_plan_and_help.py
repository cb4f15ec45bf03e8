"""`plan` counts before anything is sent; `--help` is quick; every verb that is listed exists."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, SMALL, SMALL_PROMPTS, SMALL_RUN, CommandLine, Provider, environment

import millstream
from millstream.bench.millstone.dataset import load, select
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.options import GridOptions
from millstream.bench.millstone.work import SAMPLE
from millstream.interfaces.cli.command import VERBS

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

PLAN = ("plan", "millstone", *SMALL, "--model", "openai/gpt-4o-mini", "sim/open", "--temperature", "0", "1")


def test_a_plan_counts_prompts_tokens_cost_and_time_and_sends_nothing(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    done = cli(*PLAN, "--rpm", "11", "--base-url", provider.base_url, "--json")
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    chars = sum(len(item.prompt) for item in Grid(select(load(SAMPLE), limit=1), GridOptions(templates=1, trials=2)))
    priced, unpriced = run["lanes"]
    tokens, _ = priced["input_tokens"]
    assert run["prompts"] == 4 * SMALL_PROMPTS
    assert priced["calls"] == unpriced["calls"] == [2 * SMALL_PROMPTS] * 2
    assert priced["input_tokens"] == [tokens] * 2 and tokens == pytest.approx(2 * chars / 4, rel=0.01)
    assert priced["output_tokens"] == [2 * SMALL_PROMPTS, 2 * SMALL_PROMPTS * 100]
    low, high = priced["cost"]
    assert low == pytest.approx((tokens * 0.15 + 2 * SMALL_PROMPTS * 0.60) / 1e6)
    assert high == pytest.approx((tokens * 0.15 + 2 * SMALL_PROMPTS * 100 * 0.60) / 1e6)
    assert unpriced["cost"] is None and run["cost"] is None and run["unpriced"] == ["sim/open"]
    assert priced["minutes"] == [pytest.approx(4.0)] * 2
    assert provider.calls() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_whether_workers_make_the_run_faster(cli: CommandLine) -> None:
    plan = ("plan", "millstone", *SMALL, "--model", "sim/open", "--rpm", "11", "--workers", "4")
    assert (
        "workers: 4 do not help: the quota of 11 requests a minute of sim/open (120 s) bounds this run"
        in cli(*plan).out
    )
    (run,) = json.loads(cli(*plan, "--json").out)["runs"]
    assert (run["workers"]["count"], run["workers"]["helps"]) == (4, False)
    (run,) = json.loads(cli(*plan[:-2], "--json").out)["runs"]
    assert run["workers"] is None


@pytest.mark.parametrize(
    ("extra", "times", "written"),
    [
        ('service_tier = "default"', 1.0, 0.125),
        ('service_tier = "priority"', 2.0, 0.125),
        ('prompt_cache_retention = "24h"', 1.0, 0.25),
    ],
    ids=["plain", "tier", "kept for hours"],
)
def test_a_plan_has_the_price_of_what_a_model_s_own_fields_ask_and_of_writes_to_the_cache(
    cli: CommandLine, tmp_path: Path, extra: str, times: float, written: float
) -> None:
    (tmp_path / "own.toml").write_text(f'[models."openai/gpt-6-luna"]\nextra = {{ {extra} }}\n')
    plan = ("plan", "millstone", *SMALL, "--model", "openai/gpt-6-luna", "--config", "own.toml", "--json")
    done = cli(*plan)
    assert done.code == 0, done.err
    (model,) = json.loads(done.out)["runs"][0]["lanes"]
    (tokens, _), (least, most) = model["input_tokens"], model["output_tokens"]
    assert model["cost"][0] == pytest.approx(times * (tokens * 0.10 + least * 0.50) / 1e6)
    assert model["cost"][1] == pytest.approx(times * (tokens * written + most * 0.50) / 1e6)


def test_a_plan_needs_no_key_and_tells_its_assumptions(cli: CommandLine) -> None:
    done = cli(*PLAN)
    assert done.code == 0, done.err
    assert "without a price: sim/open" in done.out
    assert "no quota declared: openai/gpt-4o-mini, sim/open" in done.out
    assert "assumed: a token is 4 characters of a prompt" in done.out
    told = cli("plan", "millstone", *SMALL, "--model", "openai/gpt-4o-mini").out
    assert "if nothing has to be sent twice or is read from the provider's cache" in told


def test_every_verb_that_is_listed_says_what_it_takes(cli: CommandLine) -> None:
    overview = cli("--help")
    assert overview.code == 0
    for verb in VERBS:
        assert f"\n  {verb} " in overview.out
        done = cli(verb, "--help")
        assert done.code == 0 and f"usage: millstream {verb}" in done.out


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_help_on_a_benchmark_leaves_out_what_belongs_to_the_other(cli: CommandLine, verb: str) -> None:
    both, ours, theirs = (cli(verb, *words, "--help").out for words in ((), ("chameleon",), ("millstone",)))
    for flag, is_ours in (("--judge", True), ("--uncited", True), ("--templates", False), ("--protocol", False)):
        assert (f"  {flag} " in both, f"  {flag} " in ours, f"  {flag} " in theirs) == (True, is_ours, not is_ours)
    assert all("  --model " in told and "  --max-cost " in told for told in (both, ours, theirs))


def test_the_version_is_told(cli: CommandLine) -> None:
    assert cli("--version").out == f"millstream {millstream.__version__}\n"


def test_no_verb_is_wrong_usage(cli: CommandLine) -> None:
    assert cli().code == 2


def loaded(tmp_path: Path, heavy: list[str], *words: str) -> str:
    """Those of the heavy packages that a command has loaded when it ends."""
    probe = (
        "import sys; from millstream.interfaces.cli.command import main; main(sys.argv[1:]); "
        f"print(sorted(set(sys.modules) & set({heavy})), file=sys.stderr)"
    )
    command = [sys.executable, "-P", "-c", probe, *words]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "sim"])
def test_help_loads_nothing_heavy(tmp_path: Path, verb: str) -> None:
    # Options are the fields of structs, so msgspec is loaded.
    heavy = ["aiohttp", "numpy", "rich", "lmdb", "uvloop", "yaml", "orjson"]
    assert loaded(tmp_path, heavy, verb, "--help") == "[]"


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "millstone", "--model", "sim/x"),
        ("plan", "chameleon", "--model", "sim/x", "--judge", "sim/y", "--search", "search/tavily"),
        ("quota", "sim/x"),
        ("models",),
    ],
)
def test_what_sends_nothing_loads_neither_what_sends_nor_what_scores(tmp_path: Path, words: tuple[str, ...]) -> None:
    senders = ["aiohttp", "aiohappyeyeballs", "aiolimiter", "google.auth", "uvloop"]
    readers = ["charset_normalizer", "lxml", "pebble", "protego", "pypdfium2", "trafilatura"]
    ours = ["wiring.engine", "wiring.routing", "providers.transport.transport", "providers.pages.endpoint"]
    heavy = [*senders, *readers, "rich", "yaml", *(f"millstream.{name}" for name in ours)]
    if "chameleon" not in words:  # whose readings are formulas, and whose sample corpus is served
        heavy += ["numpy", "httptools"]
    assert loaded(tmp_path, heavy, *words) == "[]"


def test_a_finished_run_that_is_asked_again_loads_nothing_that_connects(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    words = (
        *SMALL_RUN,
        "--base-url",
        provider.base_url,
        "--out",
        str(tmp_path / "run"),
        "--no-progress",
        "--no-report",
    )
    assert cli(*words).code == 0
    before = provider.calls()
    ours = [
        "millstream.wiring.engine",
        "millstream.providers.transport.transport",
        "millstream.metrics.millstone.scores",
    ]
    assert loaded(tmp_path, ["aiohttp", "uvloop", *ours], *words) == f"['{ours[-1]}']"
    assert provider.calls() == before


def test_help_answers_in_a_fifth_of_a_second(tmp_path: Path) -> None:
    def used_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def seconds() -> float:
        began = used_s()
        subprocess.run([*COMMAND, "run", "--help"], env=environment(tmp_path), capture_output=True, check=True)
        return used_s() - began

    # The processor's time, which waits for nobody, and the best of several, since other tests share its caches.
    assert min(seconds() for _ in range(5)) < 0.2


def test_a_command_leaves_little_to_the_last_collections_of_its_process(tmp_path: Path) -> None:
    ended = "import gc; from millstream.__main__ import main; print(main(), len(gc.get_objects()))"
    command = [sys.executable, "-P", "-c", ended, "models"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    code, objects = done.stdout.splitlines()[-1].split()
    assert code == "0" and int(objects) < 1_000


def test_the_front_door_is_the_same_from_python_and_from_a_shell(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--version"], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout == f"millstream {millstream.__version__}\n"
