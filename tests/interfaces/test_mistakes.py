"""Mistakes that beginners make: each ends within two seconds with one line that names what is wrong and what to do."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import CommandLine, Provider

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

WITHIN_S = 2.0
RUN = ("run", "millstone", "--out", "out")
ASKED = (*RUN, "--model", "sim/open")
CONVERSATION = json.dumps({"topic": "tea", "questions": ["a?", "b?"]})


class Mistake(NamedTuple):
    """A command line, the exit code that it gets, and a pattern of its line on stderr."""

    words: tuple[str, ...]
    code: int
    told: str


MISTAKES = {
    # --- verbs and options ---
    "an unknown verb": Mistake(("rum",), 2, r"unknown verb 'rum' \(nearest: run\)"),
    "another program's verb": Mistake(("label", "runs/a"), 2, r"unknown verb 'label' \(here: review\)"),
    "an option before the verb": Mistake(("--model", "a/b", "run"), 2, "unknown option '--model'"),
    "letters exchanged": Mistake((*ASKED, "--modle", "x"), 2, r"--modle \(nearest: --model\); see millstream run mill"),
    "an option of one letter": Mistake((*ASKED, "-o", "x"), 2, r"unknown option -o \(nearest: --out\)"),
    "an option of a verb's part": Mistake(
        ("data", "millstone", "--source", "x"), 2, r"unknown option --source.*; see millstream data millstone --h"
    ),
    "--version misspelt": Mistake(("--verson",), 2, r"unknown option '--verson' \(nearest: --version\)"),
    "an option that does not exist": Mistake((*ASKED, "--retries", "3"), 2, "unknown option --retries.*--help"),
    "an option without its value": Mistake((*ASKED, "--rpm"), 2, "--rpm: expected one argument"),
    "an option of another benchmark": Mistake((*ASKED, "--judge", "a/b"), 2, "--judge belongs to `run .*leave it out"),
    "a word too many": Mistake(("verify", "a", "b"), 2, "verify: 'b' is one word too many"),
    "no model": Mistake(RUN, 2, "--model: expected at least one model as provider/model, got none"),
    # --- models and keys ---
    "a model without its provider": Mistake((*RUN, "--model", "gpt-4o"), 2, 'such as openai/gpt-6-luna, got "gpt-4o"'),
    "models separated by commas": Mistake(
        (*RUN, "--model", "sim/open,", "sim/pupil"), 2, r'got "sim/open,": separate models by spaces$'
    ),
    "a provider misspelt": Mistake((*RUN, "--model", "opnai/gpt-4o"), 2, r"no provider 'opnai' \(nearest: openai\)"),
    "another program's name of a provider": Mistake((*RUN, "--model", "google/g"), 2, r"\(nearest: gemini/g\)"),
    "a provider in other letters": Mistake((*RUN, "--model", "OpenAI/gpt-4o"), 2, r"\(nearest: openai/gpt-4o\)"),
    "a notebook": Mistake(("run", "x.ipynb"), 2, r"x\.ipynb is a notebook: put the task into FILE\.py"),
    "a model of one's own server": Mistake((*RUN, "--model", "meta-llama/L"), 2, "of your own: vllm/meta-llama/L"),
    "no API key": Mistake((*RUN, "--model", "openai/gpt-4o-mini"), 2, "needs a key: set OPENAI_API_KEY"),
    # --- addresses ---
    "an address without http": Mistake((*ASKED, "--base-url", "localhost:8000/v1"), 2, "--base-url.*http://"),
    "an address with a request's path": Mistake(
        (*ASKED, "--base-url", "http://127.0.0.1:1/v1/chat/completions"), 2, r"give http://127\.0\.0\.1:1/v1$"
    ),
    "an address with a password": Mistake((*ASKED, "--base-url", "http://a:b@h/v1"), 2, "without a user, password"),
    # --- numbers ---
    "no requests a minute": Mistake((*ASKED, "--rpm", "0"), 2, '--rpm: expected .*, got "0"'),
    "a negative cost": Mistake((*ASKED, "--max-cost=-1"), 2, '--max-cost: expected .*, got "-1"'),
    "a cost with its sign": Mistake((*ASKED, "--max-cost", "$5"), 2, r'--max-cost: expected .*, got "\$5"'),
    "a temperature in words": Mistake((*ASKED, "--temperature", "hot"), 2, '--temperature: expected .*, got "hot"'),
    "a limit of nothing": Mistake((*ASKED, "--limit", "0"), 2, '--limit: expected .*, got "0"'),
    "a time without its unit": Mistake((*ASKED, "--patience", "soon"), 2, '--patience: expected .*, got "soon"'),
    "a mode that does not exist": Mistake((*ASKED, "--mode", "offline"), 2, "--mode: expected .*live.*strict"),
    "a limit of cost without a price": Mistake((*ASKED, "--max-cost", "1"), 2, r"no price.*\[prices"),
    # --- files ---
    "no such data set": Mistake((*ASKED, "--dataset", "gone.json"), 2, "gone.json.*No such file"),
    "a table as a data set": Mistake((*ASKED, "--dataset", "x.csv"), 2, "a table: make one of it by millstream data"),
    "another benchmark's data": Mistake((*ASKED, "--dataset", "talk.json"), 2, "got conversations, .*another bench"),
    "no data in the data set": Mistake((*ASKED, "--dataset", "empty.json"), 2, r"empty\.json: expected"),
    "a data set of the hub": Mistake(
        ("run", "hf:openai/gsm8k"),
        2,
        r"hf:openai/gsm8k is no benchmark: download the data .* as FILE\.py; `millstream init`",
    ),
    "an address": Mistake(
        ("run", "https://x.org/a.csv"), 2, r"https://x\.org/a\.csv is no benchmark: download the data"
    ),
    "no such run file": Mistake(("run", "mine.toml"), 2, "'mine.toml' is unknown and no such file exists"),
    "data in place of its task": Mistake(("run", "x.csv"), 2, r"x\.csv is a file of data: name the task .*\.py or "),
    "broken TOML": Mistake(("run", "broken.toml"), 2, r"broken\.toml: .*line 1"),
    "a key misspelt in a file": Mistake((*ASKED, "--config", "k.toml"), 2, r"rpms: unknown key \(nearest: rpm\)"),
    "an API key in a file": Mistake((*ASKED, "--config", "secret.toml"), 2, r"not shown: it may be a key"),
    "a configuration that is missing": Mistake((*ASKED, "--config", "no.toml"), 2, r"no\.toml.*No such file"),
    # --- folders ---
    "a run's folder as a run": Mistake(("run", "held"), 2, "held is the folder of a run: .* millstream resume held"),
    "a file as the folder": Mistake(
        (*ASKED[:2], "--out", "x.csv", "--model", "sim/open"), 5, r"x\.csv can't be written .*another --out"
    ),
    "nothing to resume": Mistake(("resume", "gone"), 2, "gone does not exist: give the folder of a run$"),
    "nothing to score": Mistake(("score", "gone"), 2, "gone does not exist: give the folder of a run$"),
    "nothing to report": Mistake(("report", "gone"), 2, "gone does not exist: give the folder of a run$"),
    "a report of Inspect's logs": Mistake(
        ("report", "logs"), 2, r"logs holds logs of Inspect, .*: `inspect view` shows"
    ),
    "a log of Inspect": Mistake(("score", "logs/a.eval"), 2, "holds logs of Inspect, which millstream does not read"),
    "nothing to verify": Mistake(("verify", "gone"), 2, "gone does not exist: give the folder of a run$"),
    "a report to report": Mistake(
        ("report", "held/report.html"), 2, r"report\.html is a file: give the run's folder, as .*held$"
    ),
    "a load test to resume": Mistake(
        ("resume", "loaded"), 2, "loaded holds a load test, not a run: millstream report loaded shows its figures$"
    ),
    "a load test to verify": Mistake(("verify", "loaded"), 2, "loaded holds a load test, not a run"),
    "a table of CSV to export": Mistake(
        ("export", "recorded", "--out", "t.csv"), 2, r"ends in \.parquet, or a folder, got t\.csv: .*Parquet alone"
    ),
    "nothing to export": Mistake(("export", "gone"), 2, "gone: expected a run's folder"),
    "a load test without a folder": Mistake(("load", "sim/open"), 2, "--out: expected the test's folder, got none"),
    "a goal that is none": Mistake(
        ("load", "sim/open", "--goal", "fast", "--out", "o"), 2, "write it as .p99 first token"
    ),
    "a batch of no Batch file": Mistake(
        ("batch", "x.csv", "o.jsonl"), 2, r"x\.csv: expected a Batch file, .*got no line that is a JSON object"
    ),
    "a batch without input": Mistake(("batch", "gone.jsonl", "o.jsonl"), 2, "gone.jsonl.*No such file"),
    "a gateway for everybody": Mistake(("serve", "--host", "0.0.0.0"), 2, "no token is set: put `token"),
}


@pytest.fixture
def files(tmp_path: Path) -> None:
    """The files that the command lines name, in the folder that they run in."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.ipynb").write_text("{}")
    (tmp_path / "talk.json").write_text(CONVERSATION)
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "broken.toml").write_text("[run\n")
    (tmp_path / "k.toml").write_text('[lanes."sim/open"]\nrpms = 5\n')
    (tmp_path / "secret.toml").write_text('[lanes."sim/open"]\nkeys = ["sk-0123456789abcdef"]\n')
    (tmp_path / "loaded").mkdir()
    (tmp_path / "loaded/calls.jsonl").write_text("")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.eval").write_bytes(b"PK")
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded/records.jsonl").write_text('{"id":"a","issue":"b","model":"c/d"}\n')
    (tmp_path / "held").mkdir()
    (tmp_path / "held/manifest.json").write_text("{}")
    (tmp_path / "held/report.html").write_text("")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_ends_at_once_with_one_line_that_says_what_to_do(mistake: Mistake, cli: CommandLine) -> None:
    # The processor's time too, since other tests run beside this one.
    began, used = time.perf_counter(), time.process_time()
    done = cli(*mistake.words)
    took, used = time.perf_counter() - began, time.process_time() - used
    *remarks, line = done.err.rstrip("\n").split("\n")
    assert done.code == mistake.code, done.err
    assert line.startswith("millstream: ") and re.search(mistake.told, line), line
    # Remarks on the data come before it; there is no traceback, and no result.
    assert all(remark.startswith("millstream: ") for remark in remarks) and done.out == ""
    assert "sk-0123456789abcdef" not in done.err
    assert used < WITHIN_S and took < 5 * WITHIN_S


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://127.0.0.1:{closed}/v1", "refuses connections: is the server up, is the port right?"),
        ("http://nowhere.invalid/v1", "the host name nowhere.invalid can't be resolved"),
        ("https://127.0.0.1:{open}/v1", "does not speak TLS"),
        ("http://127.0.0.1:{open}", "answers 404, and has no path: try http://127.0.0.1:{open}/v1"),
    ],
)
def test_a_wrong_address_is_named_while_the_run_goes_on(
    address: str, told: str, cli: CommandLine, provider: Provider
) -> None:
    """`--patience` is short, so that the run ends; the line comes before it is over."""
    ports = {"closed": closed_port(), "open": provider.base_url.rpartition(":")[2].partition("/")[0]}
    size = ("--limit", "1", "--templates", "1", "--trials", "1", "--concurrency", "32", "--patience", "1")
    where = ("--base-url", address.format(**ports), "--cache", "cache", "--no-report")
    done = cli(*ASKED, *size, *where)
    assert done.code in (3, 4), done.err
    lines = [line for line in done.err.split("\n") if told.format(**ports) in line and line.startswith("millstream: ")]
    assert len(lines) == 1
    # A 404 is not repeated.
    is_repeated = "404" not in told
    assert lines[0].endswith("Calls are repeated for 1 s (--patience); stop with Ctrl-C.") == is_repeated
    assert ("give the run command again with another --base-url and another --out" in done.out) == is_repeated


def test_a_load_test_names_an_address_that_refuses_connections_before_its_first_call(cli: CommandLine) -> None:
    where = ("--base-url", f"http://127.0.0.1:{closed_port()}/v1", "--no-report")
    done = cli("load", "sim/open", "--rate", "0.001", "--duration", "0.3s", "--out", "out", *where)
    assert "0 of 0 measured calls answered" in done.out
    assert len([line for line in done.err.split("\n") if "refuses connections: is the server up" in line]) == 1


def test_mistakes_of_one_command_are_told_together(cli: CommandLine) -> None:
    done = cli("run", "millstone", "--model", "gpt-4o", "--limit", "0", "--rpm", "0", "--modle", "x")
    lines = done.err.splitlines()
    assert done.code == 2 and len(lines) == 4
    for flag in ("--model:", "--limit:", "--rpm:", "unknown option --modle (nearest: --model)"):
        assert any(line.startswith("millstream: ") and flag in line for line in lines)


def test_a_file_of_windows_with_a_byte_order_mark_is_read(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "k.toml").write_bytes('\ufeff[lanes."sim/open"]\nrpm = 5\n'.encode())
    done = cli("quota", "--config", "k.toml", "--cache", "cache")
    assert done.code == 0 and "sim/open" in done.out
