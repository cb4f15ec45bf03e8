"""`millstream demo`: it runs through, uses the cache the second time, and never leaves its provider behind."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import Done, environment, finish, ids_of, lines_of, run_command, scores_of

from millstream.interfaces.cli.verbs.demo import add_arguments

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

MODELS = ("sim/open", "sim/stubborn", "sim/contrary", "sim/refusing")
CONVERSED = ("sim/steady", "sim/open", "sim/contrary")
ISSUE_PROMPTS = 990


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "millstream", "demo", *arguments],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A program that started the tests, such as nohup, may have ignored it for all of them.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


def demo(home: Path, *arguments: str) -> Done:
    return finish(started(home, *arguments), within_s=60)


def folders(home: Path) -> list[Path]:
    return sorted((home / "runs").iterdir())


def provider_of(folder: Path) -> tuple[str, int]:
    """Where the provider of a demo listens, by the run file."""
    url = urlsplit(tomllib.loads((folder / "run.toml").read_text())["providers"]["sim"]["base_url"])
    assert url.hostname is not None and url.port is not None
    return url.hostname, url.port


def is_listening(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=1).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


def wait_until_running(process: subprocess.Popen[str], home: Path) -> Path:
    """Until answers are being written; the demo's folder."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        assert process.poll() is None, "the demo ended before it could be interrupted"
        for records in home.glob("runs/*/open/records.jsonl"):
            if records.stat().st_size > 10_000:
                return records.parent.parent
        time.sleep(0.02)
    raise AssertionError("nothing was written in 40 s")


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done, Done]:
    home = tmp_path_factory.mktemp("demo")
    return home, demo(home, "--limit", "1"), demo(home, "--limit", "1")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The folder of a demo that ctrl-C ended, and its end."""
    home = tmp_path_factory.mktemp("interrupted")
    process = started(home)
    folder = wait_until_running(process, home)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    return folder, finish(process)


@pytest.mark.long
def test_every_prompt_of_four_models_is_answered_once(twice: tuple[Path, Done, Done]) -> None:
    home, done, _ = twice
    assert done.code == 0, done.err
    folder = folders(home)[0]
    ids = ids_of(folder / "open") + ids_of(folder / "controversial")
    assert len(ids) == len(set(ids)) == len(MODELS) * ISSUE_PROMPTS
    assert {model for model, _, _ in ids} == set(MODELS)


@pytest.mark.long
def test_the_personas_know_the_generated_set(twice: tuple[Path, Done, Done]) -> None:
    home, _, _ = twice
    folder = folders(home)[0]
    stances = [line["stance"] for line in lines_of(folder / "open" / "records.jsonl")]
    assert stances.count("other") < len(stances) / 10
    assert scores_of(folder / "open")["millstone"]["models"]["sim/open"]["om_pro_share"] > 20


@pytest.mark.long
def test_conversations_are_held_with_sources_of_the_simulated_web(twice: tuple[Path, Done, Done]) -> None:
    home, _, _ = twice
    folder = folders(home)[0]
    lines = lines_of(folder / "conversations" / "records.jsonl")
    assert {line["model"] for line in lines} == set(CONVERSED)
    assert len(lines) == 3 * len(CONVERSED) and all(line["cited"] for line in lines if line["model"] == "sim/steady")
    read = [page for line in lines for page in line["retrieved"] if page["status"] == "ok"]
    assert len(read) > 10 * len(lines)
    models = scores_of(folder / "conversations")["chameleon"]["models"]
    # steady never changes and contrary always does.
    assert [models[model]["0"]["changes"]["mean"] for model in ("sim/steady", "sim/contrary")] == [0.0, 2.0]
    page = (folder / "report.html").read_text("utf-8")
    assert "Chameleon: 3 models in 1 conversation" in page and "MillStone: 4 models" in page


@pytest.mark.long
def test_it_ends_with_one_table_of_scores_and_the_page_to_open(twice: tuple[Path, Done, Done]) -> None:
    home, done, _ = twice
    folder = folders(home)[0]
    assert [model for model in MODELS if model not in done.out] == []
    lines = done.out.splitlines()
    assert lines[0].split() == ["model", "measured", "score", "95%", "interval"]
    assert len(lines) == 1 + len(MODELS) + len(CONVERSED) + 2
    assert re.fullmatch(r"3,969 answers, 0 of them from the cache; \d+ remarks: see the report", lines[-2])
    assert lines[-1] == f"open in a browser: {folder / 'report.html'}"
    assert str(folder) in done.err.splitlines()[0]


def test_the_quotas_are_declared_so_that_lanes_are_at_work(interrupted: tuple[Path, Done]) -> None:
    folder, _ = interrupted
    lanes = tomllib.loads((folder / "run.toml").read_text())["lanes"]
    assert set(lanes) == {*MODELS, "sim/steady", "sim/judge"}
    assert all(lane["rpm"] > 0 and lane["tpm"] > 0 and lane["concurrency"] == 256 for lane in lanes.values())


@pytest.mark.long
def test_the_second_time_it_answers_from_the_cache_into_a_new_folder_and_says_so(
    twice: tuple[Path, Done, Done],
) -> None:
    home, first, second = twice
    assert second.code == 0, second.err
    assert "answers, 0 of them from the cache" in first.out
    assert "3,969 answers, 3,969 of them from the cache" in second.out
    one, other = folders(home)
    assert scores_of(one / "open") == scores_of(other / "open")
    # Pages that gave nothing are not asked for again either.
    assert scores_of(one / "conversations") == scores_of(other / "conversations")
    # Another provider, another port, the same answers: the name stands for the address.
    assert provider_of(one) != provider_of(other)


@pytest.mark.long
def test_the_provider_ends_with_the_demo(twice: tuple[Path, Done, Done]) -> None:
    home, _, _ = twice
    assert [is_listening(provider_of(folder)) for folder in folders(home)] == [False, False]


def test_ctrl_c_ends_both_and_what_is_in_flight_is_still_answered(interrupted: tuple[Path, Done]) -> None:
    folder, done = interrupted
    assert done.code == 130, done.err
    assert not is_listening(provider_of(folder))
    ids = ids_of(folder / "open")
    assert len(ids) == len(set(ids)) > 0
    assert "failed attempts" not in done.err
    assert ids_of(folder / "open", "failures.jsonl") == []
    assert "pending" in done.out
    _, port = provider_of(folder)
    web_port = tomllib.loads((folder / "run.toml").read_text())["searches"]["searxng"]["base_url"].rpartition(":")[2]
    sim = f"millstream sim --full-size --port {port} --web-port {web_port} --web --hosts 240"
    assert f"to go on: {sim}, and beside it: millstream run {folder / 'run.toml'}" in done.err


@pytest.mark.long
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_provider_never_survives_the_demo(tmp_path: Path, kill: signal.Signals) -> None:
    process = started(tmp_path)
    folder = wait_until_running(process, tmp_path)
    assert is_listening(provider_of(folder))
    process.send_signal(kill)
    finish(process)
    deadline = time.monotonic() + 5
    while is_listening(provider_of(folder)):
        assert time.monotonic() < deadline, "the provider still listens 5 s after the demo's end"
        time.sleep(0.05)


def test_an_unwritable_place_is_one_line_and_a_local_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = demo(tmp_path, "--runs", "file/runs")
    assert done.code == 5
    assert done.out == "" and done.err.count("\n") == 1
    assert "choose another --runs" in done.err


def test_a_quick_demo_is_one_of_two_issues() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert [parser.parse_args(words).limit for words in (["--quick"], ["--limit", "2"], [])] == [2, 2, None]


@pytest.mark.parametrize("words", [("--limit", "none"), ("--limit", "0"), ("--quick", "--limit", "3")])
def test_a_wrong_size_is_one_line_and_starts_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    done = run_command(tmp_path, "demo", *words)
    assert done.code == 2 and "--limit" in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
