"""`millstream sim`: where it listens, what it says, and when it ends."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from command_line import COMMAND, CommandLine, Done, environment, finish

from millstream.bench.evaluation.door.declarations import BUILT_IN
from millstream.interfaces.cli.verbs import sim
from millstream.providers.table import PROVIDERS, SIM_PORT


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    """A provider whose standard input is a pipe of ours."""
    return subprocess.Popen(
        [*COMMAND, "sim", "--port", "0", *arguments],
        cwd=home,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def address_in(line: str) -> str:
    """The address in the first line that `sim` prints."""
    return line.removeprefix("simulated provider, listening at ").partition(";")[0]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_default_port_is_where_the_provider_name_sim_points() -> None:
    parser = argparse.ArgumentParser()
    sim.add_arguments(parser)
    assert parser.parse_args([]).port == SIM_PORT
    assert PROVIDERS["sim"].base_url == f"http://127.0.0.1:{SIM_PORT}/v1"


def test_one_line_says_where_it_is_and_how_to_reach_it(tmp_path: Path) -> None:
    process = started(tmp_path)
    line = first_line(process)
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    base_url = address_in(line)
    assert base_url.startswith("http://127.0.0.1:") and base_url.endswith("/v1")
    told = f"millstream run {BUILT_IN[0]} --model sim/open --out DIR --base-url"
    assert line == f"simulated provider, listening at {base_url}; try: {told} {base_url}; Ctrl-C stops it"
    assert done == Done(0, "", "simulated provider stopped\n")


def test_it_answers_as_the_model_that_is_asked_for(tmp_path: Path) -> None:
    process = started(tmp_path)
    try:
        base_url = address_in(first_line(process))
        body = json.dumps({"model": "open", "messages": [{"role": "user", "content": "Good morning."}]}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{base_url}/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            reply = json.load(answer)
        assert reply["model"] == "open" and reply["choices"][0]["message"]["content"]
    finally:
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 0


def test_with_until_eof_it_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    process = started(tmp_path, "--until-eof")
    assert first_line(process)
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    assert finish(process, within_s=10) == Done(0, "", "simulated provider stopped\n")


def test_without_until_eof_a_closed_input_means_nothing(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert first_line(process)
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "70000"), "port (70000) must be >= 0 and <= 65535"),
        (("--fault", "nonsense"), "fault 'nonsense' does not exist"),
        (("--latency", "soon"), "latency 'soon' is not understood"),
        (("--rpm", "-3"), "requests (-3) must be >= 1"),
        (("--dataset", "nowhere"), "data set nowhere does not exist"),
        (("--ful-size",), "unknown option --ful-size (nearest: --full-size)"),
    ],
)
def test_wrong_usage_is_one_line(cli: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    done = cli("sim", *arguments)
    assert done.code == 2
    assert done.out == "" and done.err.count("\n") == 1
    assert said in done.err


@pytest.mark.parametrize(("flag", "value"), [("--port-file", "/nowhere/at/all"), ("--host", "192.0.2.1")])
def test_an_address_or_file_that_can_not_be_had_is_one_line_and_a_local_fault(
    cli: CommandLine, flag: str, value: str
) -> None:
    done = cli("sim", "--port", "0", flag, value)
    assert done.code == 5
    assert done.out == "" and done.err.count("\n") == 1 and flag in done.err


def test_a_port_that_is_taken_is_told_with_what_may_run_there(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = cli("sim", "--port", str(taken.getsockname()[1]))
    assert done.code == 5 and "address already in use: perhaps a simulator runs there already" in done.err
    assert done.err.endswith("; if not, give another --port\n")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_with_a_request_under_way(tmp_path: Path, stop: signal.Signals) -> None:
    port_file = tmp_path / "port"
    process = started(tmp_path, "--port-file", str(port_file))
    assert first_line(process)
    with socket.create_connection(("127.0.0.1", int(port_file.read_text()))) as waiting:
        waiting.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        process.send_signal(stop)
        assert finish(process, within_s=10) == Done(0, "", "simulated provider stopped\n")


def test_full_size_writes_the_generated_set_into_the_cache_folder_and_knows_it(tmp_path: Path) -> None:
    process = started(tmp_path, "--full-size", "--no-sample-data")
    try:
        assert first_line(process)
        folder = tmp_path / ".cache" / "millstream" / "full-size"
        assert len(list(folder.glob("*.json"))) == 107
    finally:
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 0


def test_the_faults_are_listed_without_listening(cli: CommandLine) -> None:
    done = cli("sim", "--list-faults")
    assert done.code == 0
    assert "truncated_json" in done.out and "insufficient_quota" in done.out


@pytest.mark.needs_benchmark("chameleon")
def test_with_web_three_more_lines_lead_searches_and_pages_there(tmp_path: Path) -> None:
    port_file = tmp_path / "web.port"
    process = started(tmp_path, "--web", "--web-port-file", str(port_file), "--pages", "120", "--trouble-share", "0")
    try:
        base_url = address_in(first_line(process))
        told = [first_line(process) for _ in range(4)]
        address = f"http://127.0.0.1:{port_file.read_text().strip()}"
        assert told[0] == f"simulated web of 120 pages on 40 hosts, and its search engine, at {address}:"
        assert told[1] == f"export SEARXNG_BASE_URL={address}"
        assert told[2] == f"export BRAVE_SEARCH_BASE_URL={address}/res/v1 BRAVE_API_KEY=any"
        assert f"--allow-host '*.sim.test={address.removeprefix('http://')}' --out DIR --base-url {base_url}" in told[3]
        with urllib.request.urlopen(f"{address}/search?q=wind+farms&format=json", timeout=10) as answer:
            url = json.load(answer)["results"][0]["url"]
        host, _, path = url.removeprefix("http://").partition("/")
        with urllib.request.urlopen(urllib.request.Request(f"{address}/{path}", headers={"Host": host})) as page:
            assert page.status == 200 and page.read()
    finally:
        process.send_signal(signal.SIGTERM)
        assert finish(process) == Done(0, "", "simulated provider stopped\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pages", "10"), "--pages is of the simulated web: give --web too"),
        (("--web", "--pages", "0"), "pages (0) must be >= 1"),
        (("--web", "--trouble-share", "2"), "trouble share (2.0) must be >= 0 and <= 1"),
        (("--web", "--search-fault", "flood"), "search fault 'flood' does not exist"),
        (("--web", "--page-latency", "soon"), "latency 'soon' is not understood"),
        (("--web", "--web-port", "70000"), "web port (70000) must be >= 0 and <= 65535"),
    ],
)
def test_wrong_usage_of_the_web_is_one_line(cli: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    done = cli("sim", *arguments)
    assert done.code == 2
    assert done.out == "" and done.err.count("\n") == 1
    assert said in done.err


def test_a_web_port_in_use_is_one_line_and_a_local_fault(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli("sim", "--port", "0", "--web", "--web-port", str(taken.getsockname()[1]))
    assert done.code == 5
    assert done.out == "" and done.err.count("\n") == 1 and "--web-port" in done.err


def test_the_troubles_of_pages_are_listed_without_listening(cli: CommandLine) -> None:
    done = cli("sim", "--list-troubles")
    assert done.code == 0
    assert "bomb" in done.out and "robots.txt" in done.out
