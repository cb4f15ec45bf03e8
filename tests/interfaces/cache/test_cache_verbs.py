"""`millstream cache`: what is stored, why a call misses, and that nothing is dropped by accident."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import put
from command_line import SMALL, CommandLine, Done, Provider, lines_of

from millstream.engine.call import Call
from millstream.engine.endpoint import Response
from millstream.engine.store.cache import Cache, prompt_mark
from millstream.interfaces.cache.why import EncodedCall, encoded_call, explain
from millstream.wiring import Settings

pytestmark = pytest.mark.needs_benchmark("millstone")

ANSWERED_BY = "grok-4.3, fingerprint fp_1, router xAI"
ANSWER = (
    b'{"model":"grok-4.3","system_fingerprint":"fp_1","provider":"xAI",'
    b'"choices":[{"message":{"content":"A"},"finish_reason":"stop"}]}'
)
OPENAI = "https://api.openai.com/v1/chat/completions"


def asked(prompt: str, model: str = "openai/gpt-4o", *, base_url: str | None = None, **set_: object) -> EncodedCall:
    return encoded_call(Call(model, prompt, **set_), Settings(base_url=base_url, environment={}))  # type: ignore[arg-type]


def stored(folder: Path, *calls: EncodedCall, response: Response | None = None) -> None:
    async def store() -> None:
        cache = Cache(folder)
        await asyncio.gather(
            *(put(cache, one.key, one.request, one.call.trial, response or Response(200, ANSWER)) for one in calls)
        )
        cache.close()

    asyncio.run(store())


def why(folder: Path, call: EncodedCall) -> str:
    cache = Cache(folder, read_only=True)
    try:
        return "\n".join(explain(cache, call))
    finally:
        cache.close()


# stats


def test_stats_count_answers_by_endpoint_and_model(cli: CommandLine, tmp_path: Path) -> None:
    stored(tmp_path / "c", *(asked("q", trial=trial) for trial in range(5)), asked("q", temperature=0.5))
    stored(tmp_path / "c", asked("q", "openai/gpt-4o-mini"), asked("q", base_url="http://127.0.0.1:1/v1"))
    told = json.loads(cli("cache", "stats", "--cache", "c", "--json").out)
    assert told["entries"] == 8
    assert told["file_bytes"] == (tmp_path / "c" / "data.mdb").stat().st_size
    assert [(group["endpoint"], group["model"], group["entries"]) for group in told["groups"]] == [
        (OPENAI, "gpt-4o", 6),
        ("http://127.0.0.1:1/v1/chat/completions", "gpt-4o", 1),
        (OPENAI, "gpt-4o-mini", 1),
    ]
    assert told["groups"][0]["bytes"] == 6 * len(ANSWER)
    assert told["oldest"] <= told["newest"]


@pytest.mark.parametrize(
    "arguments",
    [("stats",), ("prune", "--all"), ("why", "--model", "sim/open", "--prompt", "hello")],
    ids=["stats", "prune", "why"],
)
def test_a_missing_cache_is_one_line_and_is_not_created(
    cli: CommandLine, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = cli("cache", *arguments, "--cache", "nowhere")
    assert done.code == 5
    assert done.out == "" and done.err.count("\n") == 1
    assert "nowhere does not exist: nothing has been stored there" in done.err
    assert not (tmp_path / "nowhere").exists()


# prune


def test_prune_without_a_criterion_drops_nothing(cli: CommandLine, tmp_path: Path) -> None:
    stored(tmp_path / "c", asked("q"))
    done = cli("cache", "prune", "--cache", "c")
    assert done.code == 2
    assert "expected --older-than AGE or --all" in done.err
    assert json.loads(cli("cache", "stats", "--cache", "c", "--json").out)["entries"] == 1


def test_prune_drops_what_is_older_and_says_how_many(cli: CommandLine, tmp_path: Path) -> None:
    stored(tmp_path / "c", asked("q"), asked("r"))
    kept = cli("cache", "prune", "--older-than", "1h", "--cache", "c")
    assert "0 answers dropped, 2 kept" in kept.out
    dropped = cli("cache", "prune", "--older-than", "0m", "--cache", "c")
    assert "2 answers dropped, 0 kept" in dropped.out
    assert json.loads(cli("cache", "stats", "--cache", "c", "--json").out)["entries"] == 0


@pytest.mark.parametrize("age", ["3", "3 years", "-3d", "", "d"])
def test_an_age_without_its_unit_is_refused(cli: CommandLine, tmp_path: Path, age: str) -> None:
    stored(tmp_path / "c", asked("q"))
    done = cli("cache", "prune", f"--older-than={age}", "--cache", "c")
    assert done.code == 2
    assert f'expected an age with its unit, as 90m, 12h, 30d or 8w, got "{age}"' in done.err


# why: what differs


def test_the_same_call_is_a_hit(tmp_path: Path) -> None:
    stored(tmp_path, asked("q", temperature=0.5, max_tokens=4, trial=2))
    told = why(tmp_path, asked("q", temperature=0.5, max_tokens=4, trial=2))
    assert f"hit: answered from the cache ({len(ANSWER)} bytes, stored 20" in told
    assert told.rstrip().endswith(f"UTC) by {ANSWERED_BY}")


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [
        (asked("q"), asked("q", temperature=0.5), "temperature not sent there, 0.5 here"),
        (asked("q", temperature=0.0), asked("q"), "temperature 0.0 there, not sent here"),
        (
            asked("q", max_tokens=100),
            asked("q", max_tokens=600),
            "max_completion_tokens 100 there, 600 here",
        ),
        (asked("q"), asked("q", "openai/gpt-4o-mini"), "model gpt-4o there, gpt-4o-mini here"),
        (asked("q", trial=3), asked("q", trial=4), "samples 3 there, 4 here"),
        (
            asked("q", "sim/open"),
            asked("q", "vllm/open"),
            "endpoint sim/chat/completions there, http://127.0.0.1:8000/v1/chat/completions here",
        ),
    ],
    ids=["set here", "set there", "other value", "model", "sample", "endpoint"],
)
def test_a_miss_names_what_differs_and_nothing_else(
    tmp_path: Path, there: EncodedCall, here: EncodedCall, said: str
) -> None:
    stored(tmp_path, there)
    lines = why(tmp_path, here).splitlines()
    assert lines[2:] == ["miss: this prompt was asked, but not this call", f"  1 stored answer: {said}"]


def test_the_likest_calls_are_told_first_and_samples_as_ranges(tmp_path: Path) -> None:
    near = [asked("q", trial=trial) for trial in (0, 1, 2, 5)]
    far = [asked("q", temperature=1.0, max_tokens=7, trial=trial) for trial in (0, 1)]
    stored(tmp_path, *far, *near)
    lines = why(tmp_path, asked("q", trial=9)).splitlines()
    assert lines[3:] == [
        "  4 stored answers: samples 0 to 2, 5 there, 9 here",
        "  2 stored answers: max_completion_tokens 7 there, not sent here; temperature 1.0 there, not sent here; "
        "samples 0 to 1 there, 9 here",
    ]


def colliding_prompts() -> tuple[str, str]:
    """Two prompts of one length that the cache's mark can't tell apart."""
    seen: dict[int, str] = {}
    for number in range(2_000_000):
        prompt = f"{number * 2_654_435_761 % 2**40:010x}"
        mark = zlib.crc32(prompt.encode())
        if mark in seen:
            return seen[mark], prompt
        seen[mark] = prompt
    raise AssertionError("no two of two million prompts have the same CRC-32")


def test_another_prompt_with_the_same_mark_is_not_taken_for_this_one(tmp_path: Path) -> None:
    one, other = colliding_prompts()
    assert one != other and prompt_mark(asked(one).request) == prompt_mark(asked(other).request)
    stored(tmp_path, asked(one))
    assert "miss: never asked" in why(tmp_path, asked(other))


def test_what_is_stored_but_no_answer_is_called_a_miss(tmp_path: Path) -> None:
    stored(tmp_path, asked("q"), response=Response(200, b'{"choices":'))
    assert "miss: what is stored is no answer (bad_json" in why(tmp_path, asked("q"))


def test_no_key_is_needed_and_none_is_told(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stored(tmp_path / "c", asked("q"))
    call = ("cache", "why", "--model", "openai/gpt-4o", "--prompt", "q", "--cache", "c")
    without = cli(*call)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    assert without.code == 0 and "hit:" in without.out
    assert cli(*call) == without


def test_a_prompt_can_stand_in_a_file(cli: CommandLine, tmp_path: Path) -> None:
    prompt = "two\nlines, and \N{GREEK SMALL LETTER OMEGA}"
    (tmp_path / "prompt.txt").write_text(prompt, encoding="utf-8")
    stored(tmp_path / "c", asked(prompt))
    done = cli("cache", "why", "--model", "openai/gpt-4o", "--prompt", "@prompt.txt", "--cache", "c")
    assert "hit:" in done.out
    gone = cli("cache", "why", "--model", "openai/gpt-4o", "--prompt", "@gone.txt", "--cache", "c")
    assert gone.code == 2 and "--prompt @gone.txt: expected a readable file" in gone.err


# why: an item of a run


def a_run(cli: CommandLine, provider: Provider, *more: str, out: str = "run") -> Done:
    base = ("--base-url", provider.base_url, "--cache", "c", "--no-progress", "--no-report", *SMALL)
    return cli("run", "millstone", "--out", out, *base, *more)


def test_a_live_run_is_told_to_take_nothing(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    a_run(cli, provider, "--model", "sim/open", "--mode", "live")
    item = lines_of(tmp_path / "run" / "records.jsonl")[0]["id"]
    done = cli("cache", "why", "run", item)
    assert "miss: never asked" in done.out
    assert "the run's mode is live: it takes no answer that another run stored" in done.out


def test_a_run_of_several_models_needs_to_be_told_which(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    a_run(cli, provider, "--model", "sim/open", "sim/contrary")
    item = lines_of(tmp_path / "run" / "records.jsonl")[0]["id"]
    done = cli("cache", "why", "run", item)
    assert done.code == 2
    assert "--model is missing: give one of the run's (sim/open, sim/contrary)" in done.err
    assert "hit:" in cli("cache", "why", "run", item, "--model", "sim/contrary").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "no/such/item/0"), "run has no item 'no/such/item/0': expected issue/template/config/trial, as "),
        (("run",), "expected a run's folder and an id, got 'run' alone"),
        (("elsewhere", "a/1/b/0"), "elsewhere does not exist: give the folder of a run"),
        (("run", "a/1/b/0", "--temperature", "1"), "--temperature: expected one of the run's (none), got 1"),
        (("run", "a/1/b/0", "--prompt", "x"), "--prompt belongs to a call without a run"),
        ((), "expected DIR ID, or --model and --prompt"),
        (("--model", "nowhere/x", "--prompt", "x"), "no provider 'nowhere'"),
    ],
)
def test_wrong_usage_is_one_line(
    cli: CommandLine, finished_run: Callable[..., Path], arguments: tuple[str, ...], said: str
) -> None:
    finished_run()
    done = cli("cache", "why", *arguments)
    assert done.code == 2
    assert done.out == "" and done.err.count("\n") == 1
    assert said in done.err


def test_cache_alone_says_what_there_is(cli: CommandLine) -> None:
    done = cli("cache")
    assert done.code == 2 and "stats|why|prune" in done.err
