"""Whatever options are put together, a load test is planned or refused in one line."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.bench.evaluation.door.declarations import BUILT_IN
from millstream.interfaces.cli.command import main

_NUMBERS = st.sampled_from(["0", "1", "2.5", "9", "300", "-1", "1e9", "nan", "", "x"])
_TIMES = st.sampled_from(["0", "1", "30s", "2m", "-3", "1h", "soon"])
_VALUES = {
    "--rate": _NUMBERS,
    "--ramp": st.sampled_from(["1:9", "9:0", "5:5", "0:0", "1", "1:", ":", "1:2:3", "nan:1"]),
    "--steps": st.sampled_from(["1,2", "5,1,5", "1", ",", "1,,2", "1,nan", "0,1"]),
    "--replay": st.sampled_from(["trace", "prompts", "nowhere", "."]),
    "--in-flight": _NUMBERS,
    "--goal": st.sampled_from(
        [
            "p99 latency <= 1 s",
            "p99.99 token < 5 ms and errors <= 50%",
            "p50 gap <= 0 s",
            "p99 gap <= 1 s and errors <= 0%",
        ]
    ),
    "--arrivals": st.sampled_from(["poisson", "constant", "gamma", "even"]),
    "--burstiness": _NUMBERS,
    "--step-time": _TIMES,
    "--speed": _NUMBERS,
    "--from": _NUMBERS,
    "--to": _NUMBERS,
    "--precision": st.sampled_from(["5%", "0.1%", "50%", "0%", "60%", "5"]),
    "--prompt-tokens": st.sampled_from(
        [
            "8",
            "7",
            "8-8",
            "9-8",
            "10-2000",
            "lognormal:20,20",
            "lognormal:20,300000",
            "lognormal:9,8",
            "trace",
            "-",
            "1-2-3",
        ]
    ),
    "--prompts": st.sampled_from(["prompts", "trace", "nowhere", "."]),
    "--dataset": st.sampled_from([BUILT_IN[0], "nowhere", ".", "prompts"]),
    "--max-tokens": st.sampled_from(["1", "0", "trace", "1.5"]),
    "--temperature": _NUMBERS,
    "--duration": _TIMES,
    "--calls": _NUMBERS,
    "--most-in-flight": _NUMBERS,
    "--drain": _TIMES,
    "--warm-up": _TIMES,
    "--cool-down": _TIMES,
    "--promise": st.sampled_from(["latency <= 1 s", "token <= 1 ms", "first token <= 0 s", "fast", ""]),
    "--seed": _NUMBERS,
    "--rpm": _NUMBERS,
    "--tpm": _NUMBERS,
    "--concurrency": _NUMBERS,
    "--max-cost": _NUMBERS,
    "--mode": st.sampled_from(["live", "record"]),
    "--timeout": _TIMES,
}
_OPTION = st.sampled_from(sorted(_VALUES)).flatmap(lambda name: _VALUES[name].map(lambda value: f"{name}={value}"))
_FLAGS = st.sampled_from(["--whole", "--exact-prompts", "--json"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    (folder / "trace").write_text("time,input_tokens,output_tokens\n0,9,3\n1,12,0\n5,7000,9\n")
    (folder / "prompts").write_text("one\n" + '{"messages": [{"role": "user", "content": "two"}]}\n')
    return folder


@settings(max_examples=times(60, 300), deadline=None)
@given(words=st.lists(st.one_of(_OPTION, _OPTION, _OPTION, _FLAGS), max_size=5, unique=True))
def test_any_options_make_a_plan_or_a_line_for_each_mistake(folder: Path, words: list[str]) -> None:
    named = ("--replay=", "--prompts=", "--dataset=")
    there = ("trace", "prompts", "nowhere", ".")
    full = [
        f"{word.partition('=')[0]}={folder / word.partition('=')[2]}"
        if word.startswith(named) and word.partition("=")[2] in there
        else word
        for word in words
    ]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["load", "openai/gpt-4o-mini", "sim/steady", "--plan", *full])
    if code == 0:
        assert out.getvalue() and (len(out.getvalue().splitlines()) == 1 or "--json" in words), words
        return
    lines = err.getvalue().splitlines()
    assert (code, out.getvalue()) == (2, "") and 1 <= len(lines) <= len(words), (words, lines)
    assert all(line.startswith("millstream: ") for line in lines), (words, lines)
