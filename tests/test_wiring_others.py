"""Providers, search engines and sinks that other packages offer: found, held to their word, never in ours' place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, SMALL, SMALL_PROMPTS, Done, Provider, environment, lines_of
from distributions import install
from recorder import recording

pytestmark = pytest.mark.long

PROVIDERS, SEARCHES, SINKS = "millstream.providers", "millstream.searches", "millstream.sinks"
BRAVE = b'{"query":{"more_results_available":false},"web":{"results":[{"url":"https://a.example/","title":"A"}]}}'

LAB = """
import os
import millstream as ms

PROVIDER = ms.Provider(os.environ["LAB"], "LAB_KEY")
"""

# Keeps what it is given, and how many lines the run's folder had by then.
ROWS = """
import json, os
import millstream as ms

class Rows:
    fault = None

    def __init__(self, path):
        self.file = open(path, "a")
        self.rows = []

    def write(self, outcome):
        if os.environ.get("BREAK_AT") and len(self.rows) == int(os.environ["BREAK_AT"]):
            raise OSError("the table\\nis locked")
        kept = sum(1 for _ in open("run/records.jsonl"))
        self.rows.append(outcome)
        self.file.write(json.dumps([outcome.key, outcome.status, kept]) + "\\n")

    def flush(self):
        self.file.flush()
        if os.environ.get("FAULT_AT") and len(self.rows) >= int(os.environ["FAULT_AT"]):
            self.fault = ms.LocalFault("the disk is full")

    def close(self):
        self.file.write('"closed"\\n')
        self.file.close()
        if os.environ.get("BREAK_CLOSE"):
            raise RuntimeError
"""


class Home:
    """A folder in which commands run, with packages of others beside it."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.site = folder / "site"
        self._variables = {"LAB": provider.base_url, "LAB_KEY": "lab-key-0123456789", "OPENAI_API_KEY": "sk-0123456789"}

    def run(self, *arguments: str, **more: str) -> Done:
        return self._done([*COMMAND, *arguments], more)

    def python(self, program: str, *arguments: str, **more: str) -> Done:
        return self._done([sys.executable, "-P", "-c", program, *arguments], more)

    def _done(self, command: list[str], more: dict[str, str]) -> Done:
        variables = environment(self.folder, **{**self._variables, **more})
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.site), variables["PYTHONPATH"]]))
        done = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path, provider: Provider) -> Home:
    return Home(tmp_path, provider)


def run_of(model: str, *more: str) -> tuple[str, ...]:
    return ("run", "millstone", "--model", model, *SMALL, "--out", "run", "--no-report", "--no-progress", *more)


# Providers


@pytest.mark.needs_benchmark("millstone")
def test_a_provider_of_another_package_is_asked_like_one_of_ours(home: Home, provider: Provider) -> None:
    install(home.site, "lab-models", LAB, {PROVIDERS: {"lab": "lab_models:PROVIDER"}})
    done = home.run(*run_of("lab/open"))
    assert (done.code, provider.calls()) == (0, SMALL_PROMPTS), done.err
    again = home.run(*run_of("lab/open", "--out", "again"))
    assert (again.code, provider.calls()) == (0, SMALL_PROMPTS)
    assert home.run("resume", "run", "--no-report").code == 0
    refused = home.run(*run_of("lab/open", "--out", "third"), LAB_KEY="")
    assert (refused.code, refused.err.count("\n")) == (2, 1) and "needs a key: set LAB_KEY" in refused.err


def test_the_models_of_others_are_listed_with_what_is_wrong_with_them(home: Home) -> None:
    install(home.site, "lab-models", LAB, {PROVIDERS: {"lab": "lab_models:PROVIDER", "openai": "lab_models:PROVIDER"}})
    install(home.site, "broken", "import nothing_of_the_kind", {PROVIDERS: {"torn": "broken:PROVIDER"}})
    install(home.site, "search-too", "ENGINE = 3", {SEARCHES: {"mine": "search_too:ENGINE"}})
    listed = home.run("models", "--json")
    assert listed.code == 0
    rows = {row["name"]: row for row in json.loads(listed.out)["providers"]}
    assert (rows["lab"]["variables"], rows["lab"]["is_ready"]) == (["LAB_KEY"], True)
    assert "torn" not in rows and rows["openai"]["address"] == "https://api.openai.com/v1"
    told = listed.err.splitlines()
    assert len(told) == 3 and all(line.startswith("millstream: ") for line in told)
    assert "'openai', which lab-models 1.0 offers" in listed.err and "millstream has one of this name" in listed.err
    assert "can't be loaded (ModuleNotFoundError: No module named 'nothing_of_the_kind')" in listed.err
    assert "is of type int; it must be a millstream.SearchEngine" in listed.err
    assert "lab " in home.run("models").out


ODD = {
    "import nothing_of_the_kind": "can't be loaded (ModuleNotFoundError: No module named 'nothing_of_the_kind')",
    "raise SystemError('out of order')": "can't be loaded (SystemError: out of order)",
    "import sys\nsys.exit('not on\\nthis machine')": "can't be loaded (SystemExit: not on this machine)",
    "OTHER = 1": "can't be loaded (AttributeError: module 'odd_lab_3' has no attribute 'PROVIDER')",
    "PROVIDER = 'http://lab'": "is of type str; it must be a millstream.Provider",
    "PROVIDER = None": "is None; it must be a millstream.Provider",
    "import millstream\nPROVIDER = millstream.Provider('http://h', kind='odd')": "has the kind 'odd'; known are",
}
REFUSED = """
import millstream as ms

for number in range(7):
    try:
        ms.Engine(ms.Lane(f"lab{number}/m"))
    except ms.ConfigurationError as error:
        print(error)
"""


@pytest.mark.needs_benchmark("millstone")
def test_a_package_that_does_not_hold_its_word_is_named_in_one_line(home: Home) -> None:
    for number, source in enumerate(ODD):
        point = {f"lab{number}": f"odd_lab_{number}:PROVIDER"}
        install(home.site, f"odd-lab-{number}", source, {PROVIDERS: point}, version="2.5")
    told = home.python(REFUSED).out.splitlines()
    assert len(told) == len(ODD)
    for number, (line, message) in enumerate(zip(told, ODD.values(), strict=True)):
        offered = f"which odd-lab-{number} 2.5 offers in millstream.providers as odd_lab_{number}:PROVIDER,"
        assert line.startswith(f"'lab{number}', {offered} ") and message in line
    done = home.run(*run_of("lab0/open"))
    assert (done.code, done.err) == (2, f"millstream: {told[0]}\n") and not (home.folder / "run").exists()


@pytest.mark.needs_benchmark("millstone")
def test_two_packages_that_offer_one_name_are_both_named(home: Home) -> None:
    for name in ("one-lab", "other-lab"):
        install(home.site, name, LAB, {PROVIDERS: {"lab": f"{name.replace('-', '_')}:PROVIDER"}})
    done = home.run(*run_of("lab/open"))
    assert done.code == 2 and "offered in millstream.providers by one-lab 1.0 and other-lab 1.0: remove one" in done.err


@pytest.mark.needs_benchmark("millstone")
def test_no_package_takes_the_place_of_a_provider_of_ours_or_of_the_configuration(
    home: Home, provider: Provider
) -> None:
    source = "import pathlib\npathlib.Path('loaded').touch()\nraise ImportError('not to be loaded')"
    install(
        home.site,
        "thief",
        source,
        {PROVIDERS: {"openai": "thief:P", "mylab": "thief:P"}, SEARCHES: {"brave": "thief:P"}},
    )
    (home.folder / "mine.toml").write_text(f'[providers.mylab]\nbase_url = "{provider.base_url}"\n')
    assert home.run(*run_of("mylab/open", "--config", "mine.toml")).code == 0
    assert home.run(*run_of("openai/open", "--out", "other", "--base-url", provider.base_url)).code == 0
    assert provider.calls() == SMALL_PROMPTS and not (home.folder / "loaded").exists()


WATCHED = """
import sys
looked_at = []
def watch(event, arguments):
    if event == "open" and "entry_points" in str(arguments[0]):
        looked_at.append(arguments[0])

sys.addaudithook(watch)
from millstream.interfaces.cli.command import main
code = main(sys.argv[1:])
print(code, len(looked_at))
"""


@pytest.mark.needs_benchmark("millstone")
def test_what_is_installed_is_read_only_for_a_name_that_is_nobodys(home: Home, provider: Provider) -> None:
    install(home.site, "lab-models", LAB, {PROVIDERS: {"lab": "lab_models:PROVIDER"}})
    ours = run_of("openai/open", "--base-url", provider.base_url)
    for _ in range(2):
        assert home.python(WATCHED, *ours).out.splitlines()[-1] == "0 0"
    code, looked_at = home.python(WATCHED, *run_of("lab/open", "--out", "lab")).out.splitlines()[-1].split()
    assert code == "0" and int(looked_at) > 0


# Searches

MINE = """
import os
import millstream as ms
from millstream.providers.search import brave

ENGINE = ms.SearchEngine(
    protocol=brave.PROTOCOL,
    reach=ms.Reach(count_max=10),
    authorizer=lambda key: ms.key_in("X-Mine", key),
    base_url=os.environ["MINE"],
    url_variable="MINE_BASE_URL",
    key_variables=("MINE_KEY",),
    lane=ms.Lane("mine", rpm=90, concurrency=3),
    limits="90 a minute",
    limits_from="its own page",
    price="two dollars",
    dollars_per_1000=2.0,
)
"""

SEARCHED = """
import asyncio, sys
import millstream as ms

async def main():
    settings = ms.Settings(cache="c", max_cost=1.0)
    async with ms.Engine(settings=settings) as engine:
        for _ in range(2):
            found = await engine.search("search/mine", "whales", 5)
            print([hit.url for hit in found.hits], found.cached, found.cost)
        lane = settings.lane_of("search/mine")
        print(lane.model, lane.rpm, lane.concurrency, engine.budget.spent)

asyncio.run(main())
"""


def test_a_search_engine_of_another_package_has_its_own_key_lane_reach_and_price(home: Home) -> None:
    install(home.site, "mine", MINE, {SEARCHES: {"mine": "mine:ENGINE"}})
    with recording(BRAVE) as server:
        more = {"MINE": server.origin, "MINE_KEY": "mine-0123456789"}
        done = home.python(SEARCHED, **more)
        assert done.out.splitlines() == [
            "['https://a.example/'] False 0.002",
            "['https://a.example/'] True 0.0",
            "search/mine 90 3 0.002",
        ], done.err
        (sent,) = server.sent
        assert sent.headers["x-mine"] == "mine-0123456789"
        listed = home.run("models", **more)
        assert re.search(r"^search/mine +MINE_KEY: set ", listed.out, re.MULTILINE)


def test_a_search_engine_of_nobody_is_refused(home: Home) -> None:
    done = home.run("models", "--check", "search/mine")
    assert done.code == 2 and "no search engine 'mine'; known are brave, corpus," in done.err


# Sinks


def rows_of(home: Home) -> list[list[object]]:
    return [json.loads(line) for line in (home.folder / "rows").read_text().splitlines() if line != '"closed"']


@pytest.mark.needs_benchmark("millstone")
def test_a_sink_is_given_every_outcome_once_the_folder_has_it(home: Home, provider: Provider) -> None:
    install(home.site, "rows", ROWS, {SINKS: {"rows": "rows:Rows"}})
    done = home.run(*run_of("lab/open", "--sink", "rows:rows"))
    assert done.code == 2 and "no provider 'lab'" in done.err
    done = home.run(*run_of("openai/open", "--base-url", provider.base_url, "--sink", "rows:rows"))
    assert done.code == 0, done.err
    rows, records = rows_of(home), lines_of(home.folder / "run/records.jsonl")
    assert [row[0] for row in rows] == [record["key"] for record in records] and len(rows) == SMALL_PROMPTS
    assert all(isinstance(kept, int) and kept >= place for place, (_, _, kept) in enumerate(rows, 1))
    assert (home.folder / "rows").read_text().endswith('\n"closed"\n')
    # What is done is not asked again, so that no sink hears of it again; a new run tells of stored answers too.
    assert home.run("resume", "run", "--no-report").code == 0 and len(rows_of(home)) == SMALL_PROMPTS
    (home.folder / "run").rename(home.folder / "first")
    assert home.run(*run_of("openai/open", "--base-url", provider.base_url, "--sink", "rows:rows")).code == 0
    assert (len(rows_of(home)), provider.calls()) == (2 * SMALL_PROMPTS, SMALL_PROMPTS)


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ({"BREAK_AT": "5"}, "OSError: the table is locked"),
        ({"FAULT_AT": "5"}, "the disk is full"),
        ({"FAULT_AT": str(SMALL_PROMPTS)}, "the disk is full"),
        ({"BREAK_CLOSE": "1"}, "RuntimeError"),
    ],
)
def test_a_fault_of_a_sink_stops_the_run_which_can_be_resumed(
    home: Home, provider: Provider, trouble: dict[str, str], told: str
) -> None:
    install(home.site, "rows", ROWS, {SINKS: {"rows": "rows:Rows"}})
    sent = ("--base-url", provider.base_url, "--concurrency", "1", "--sink", "rows:rows")
    done = home.run(*run_of("openai/open", *sent), **trouble)
    assert done.code == 5, done.err
    assert f"sink rows of rows 1.0: {told}; the run's own folder and the cache are whole" in done.err
    records = lines_of(home.folder / "run/records.jsonl")
    is_late = "5" not in trouble.values()
    assert (len(records) == SMALL_PROMPTS) is is_late and len(records) >= 5
    assert "Without flip" in done.out and (home.folder / "run/scores.json").exists()
    # The sink that it ran with is kept, as its other options are.
    resumed = home.run("resume", "run", "--no-report", "--no-progress")
    assert resumed.code == 0 and len(lines_of(home.folder / "run/records.jsonl")) == SMALL_PROMPTS
    assert provider.calls() == SMALL_PROMPTS
    assert len(rows_of(home)) >= SMALL_PROMPTS - 1


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        (
            "def make(text): raise ValueError(f'{text} is no address')",
            5,
            "sink rows of rows 1.0 can't be opened with 'x:y' (ValueError: x:y is no address)",
        ),
        (
            "def make(text): return []",
            5,
            "sink rows of rows 1.0 gave a list, which has no write, flush, fault: it is no Sink",
        ),
        ("make = 3", 2, "is of type int; it must be a function that takes a text and gives a millstream.Sink"),
        ("import nothing_of_the_kind", 2, "can't be loaded (ModuleNotFoundError"),
    ],
)
def test_a_sink_that_is_none_is_told_in_one_line(
    home: Home, provider: Provider, source: str, code: int, message: str
) -> None:
    install(home.site, "rows", source, {SINKS: {"rows": "rows:make"}})
    done = home.run(*run_of("openai/open", "--base-url", provider.base_url, "--sink", "rows:x:y"))
    assert (done.code, provider.calls()) == (code, 0)
    assert message in done.err and len([line for line in done.err.splitlines() if "sink" in line.lower()]) == 1


@pytest.mark.needs_benchmark("millstone")
def test_a_sink_that_nobody_offers_is_refused_before_a_folder_is_begun(home: Home, provider: Provider) -> None:
    install(home.site, "rows", ROWS, {SINKS: {"rows": "rows:Rows", "more": "rows:Rows"}})
    done = home.run(*run_of("openai/open", "--base-url", provider.base_url, "--sink", "row:x"))
    assert done.code == 2 and "no sink 'row': installed packages offer more, rows;" in done.err
    assert not (home.folder / "run").exists()
    done = home.run(*run_of("openai/open", "--sink", ":x"))
    assert done.code == 2 and "--sink: expected NAME or NAME:ARGUMENT" in done.err


OPENED = """
import asyncio, sys
import millstream as ms

async def main():
    calls = [ms.Call("openai/open", "A or B?", trial=trial) for trial in range(3)]
    async with ms.Engine(base_url=sys.argv[1], cache="c") as engine:
        with ms.open_sink("rows:rows") as sink:
            async for outcome in engine.run(calls, sink):
                pass
            print(sink)
        print(sink)
    async with ms.Engine(settings=ms.Settings(base_url=sys.argv[1], cache="c", sink="rows:rows")) as engine:
        await engine.ask(calls[0])
        async for outcome in engine.run(calls[1:]):
            pass

asyncio.run(main())
"""


def test_a_sink_is_opened_from_python_for_a_run_or_for_all_of_an_engine(home: Home, provider: Provider) -> None:
    (home.folder / "run").mkdir()
    (home.folder / "run/records.jsonl").touch()
    install(home.site, "rows", ROWS, {SINKS: {"rows": "rows:Rows"}})
    done = home.python(OPENED, provider.base_url)
    assert done.out.splitlines() == ["<sink rows of rows 1.0 [open]>", "<sink rows of rows 1.0 [closed]>"], done.err
    assert len(rows_of(home)) == 6 and len({str(row[0]) for row in rows_of(home)}) == 3
