"""A task from its file to its report over real HTTP: asked once, killed and resumed, planned, proven, exported."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from command_line import CommandLine, Provider, ids_of, lines_of, scores_of

from millstream.bench.load.prompt_sources import of_dataset
from millstream.configuration.errors import UsageError

# The example of the documents, in at most 12 lines; the marker shows how often it was executed.
CAPITALS = """
import millstream as ms

capitals = ms.Task(
    data="capitals.csv",
    prompt="What is the capital of {country}? Answer in one word.",
    score=ms.regex("answer to the prompt [0-7]"),
    trials=3,
)
"""
MARKER = "\nwith open(__file__ + '.executed', 'a') as file:\n    file.write('x')\n"
ROWS, TRIALS = 20, 3
MODELS = ("sim/open", "sim/steady")
EACH = ROWS * TRIALS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"country {number},capital {number},{'north' if number % 2 else 'south'}" for number in range(ROWS)]
    (tmp_path / "capitals.csv").write_text("\n".join(["country,capital,group", *rows]) + "\n")
    (tmp_path / "capitals.py").write_text(CAPITALS + MARKER)
    return tmp_path


def asked(provider: Provider, what: str = "capitals.py", *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", what, "--model", *MODELS, *where, "--out", "run", *more)


def executed(folder: Path) -> int:
    path = folder / "capitals.py.executed"
    return len(path.read_text()) if path.exists() else 0


def test_twelve_lines_are_run_scored_proven_exported_and_reported(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    assert len(CAPITALS.strip().splitlines()) <= 12
    done = cli(*asked(provider))
    assert done.code == 0, done.err
    assert provider.calls() == len(ids_of(folder / "run")) == len(MODELS) * EACH
    models = scores_of(folder / "run")["capitals"]["models"]
    assert sorted(models) == sorted(MODELS)
    record = lines_of(folder / "run/records.jsonl")[0]
    assert record["row"]["country"] in record["prompt"] and record["id"] == f"{record['item']}/{record['trial']}"
    assert set(models["sim/open"]["groups"]) == {"north", "south"}
    assert f"{models['sim/open']['mean']:.3f}" in done.out and "sim/open minus sim/steady: +0.000" in done.out
    times = executed(folder)
    for verb in ("score", "verify", "report"):
        done = cli(verb, "run")
        assert done.code == 0, done.err
    assert cli("export", "run", "--parquet").code == 0
    assert "capitals: 2 models on 20 items" in (folder / "run/report.html").read_text()
    assert executed(folder) == times
    table = pq.read_table(folder / "run/records.parquet")
    assert json.loads(table["row"][0].as_py()).keys() == {"country", "capital", "group"}


def test_a_score_function_that_raises_for_one_row_ends_run_score_and_report_with_3(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    (folder / "crash.py").write_text(
        CAPITALS.replace('ms.regex("answer to the prompt [0-7]")', 'lambda reply, row: 1 / (row["country"][8:] != "7")')
    )
    done = cli(*asked(provider, "crash.py"))
    assert done.code == 3 and done.err == ""
    assert "the score function raised on 6 of 120 answers: ZeroDivisionError in crash.py line 7: " in done.out
    assert "exit code 3: finished, but not everything was measured" in done.out
    assert scores_of(folder / "run")["capitals"]["models"]["sim/open"]["mean"] == 1.0
    assert (cli("score", "run").code, cli("report", "run").code) == (3, 3)
    assert "Nothing is missing" not in (folder / "run/report.html").read_text()


def test_sys_exit_in_a_function_of_the_task_is_an_error_of_that_function(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    scorer, prompt = 'ms.regex("answer to the prompt [0-7]")', '"What is the capital of {country}? Answer in one word."'
    (folder / "stop.py").write_text(CAPITALS.replace(scorer, "lambda reply, row: exit(0)"))
    (folder / "mute.py").write_text(CAPITALS.replace(prompt, "lambda row: exit(0)"))
    rows = "type('Rows', (), {'__iter__': lambda self: __import__('sys').exit(0)})()"
    (folder / "none.py").write_text(CAPITALS.replace('"capitals.csv"', rows))
    for verb, more in ((asked(provider, "mute.py"), ()), (("plan",), ("mute.py", "--model", "sim/open"))):
        done = cli(*verb, *more)
        assert done.code == 2 and "the function raised SystemExit for" in done.err and "line 2: 0" in done.err, done
    done = cli(*asked(provider, "none.py"))
    assert done.code == 2 and "data: its code raised SystemExit: 0 (none.py line 5)" in done.err, done
    assert provider.calls() == 0
    done = cli(*asked(provider, "stop.py"))
    assert done.code == 3 and provider.calls() == len(MODELS) * EACH
    assert "the score function raised on 120 of 120 answers: SystemExit in stop.py line 7: 0." in done.out, done.out
    done = cli("score", "run", "--task", "stop.py")
    assert (
        done.code == 3
        and "the score function raised on 120 of 120 answers: SystemExit in stop.py line 7: 0." in done.out
    ), done


def test_runs_with_another_limit_alone_are_compared_and_have_a_p(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    assert cli(*asked(provider), "--out", "first").code == 0
    assert cli(*asked(provider), "--out", "again").code == 0
    assert cli(*asked(provider, "capitals.py", "--max-tokens", "9"), "--out", "shorter").code == 0
    for others, sentence in (
        ("again", "first minus again, paired by item: made alike, so the differences are chance"),
        ("shorter", "first minus shorter, paired by item: they differ in max_tokens (none; 9) alone"),
    ):
        written = json.loads(cli("report", "first", others, "--out", "both", "--json").out)
        assert written["not_compared"] == []
        assert sentence in (folder / "both/report.html").read_text()
        rows = (folder / "both/tables/task-runs-compared.csv").read_text().splitlines()
        assert rows[0].split(",")[-5:] == ["p", "p_holm", "items", "flipped", "differ"]
        assert [row.split(",")[:3] for row in rows[1:]] == [["first", others, model] for model in MODELS]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("one word", "two words", "holds another run (prompt.text: What is the capital"),
        ("[0-7]", "[0-8]", "holds another run (score.score.pattern: "),
        ("trials=3", "trials=2", "holds another run (lines: 60 in that run, 40 in this"),
    ],
)
def test_a_task_that_was_changed_is_refused_in_one_line(
    cli: CommandLine, provider: Provider, folder: Path, before: str, after: str, said: str
) -> None:
    cli(*asked(provider))
    path, records = folder / "capitals.py", (folder / "run/records.jsonl").read_bytes()
    path.write_text(path.read_text().replace(before, after))
    for command in (("resume", "run"), asked(provider)):
        done = cli(*command)
        assert (done.code, said in done.err, done.err.count("\n")) == (2, True, 1), done.err
        again = f"without a call: millstream rescore {folder / 'run'} --task {path}\n"
        assert done.err.endswith(again) == ("score.score" in said), done.err
    assert (folder / "run/records.jsonl").read_bytes() == records


def test_data_that_were_changed_are_named(cli: CommandLine, provider: Provider, folder: Path) -> None:
    cli(*asked(provider))
    path = folder / "capitals.csv"
    path.write_text(path.read_text().replace("capital 3,", "capital three,"))
    done = cli("resume", "run")
    assert done.code == 2 and "capitals.csv is not the data set that this run began with" in done.err


def test_a_run_that_asks_another_judge_about_stored_answers_says_what_was_sent(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    def judged(judge: str, out: str) -> tuple[str, ...]:
        score = f'ms.judge("sim/{judge}", "right?", grades={{"yes": 1, "no": 0}})'
        (folder / "capitals.py").write_text(CAPITALS.replace('ms.regex("answer to the prompt [0-7]")', score))
        return (*asked(provider)[:-1], out)

    cli(*judged("grader", "first"))
    sent = provider.calls()
    again = cli(*judged("grader", "again"))
    assert provider.calls() == sent and "all from the cache; nothing was sent" in again.out
    pilot = cli("plan", *judged("sloppy-judge", "other")[1:-2], "--pilot", "1")
    assert "sim/sloppy-judge  " in pilot.out, pilot.err
    other = cli(*judged("sloppy-judge", "other"))
    assert provider.calls() > sent and "nothing was sent" not in other.out
    assert f"{len(MODELS) * EACH} answers, {len(MODELS) * EACH} of them from the cache" in other.out


def test_records_are_scored_by_another_files_scorers_and_the_runs_own_scores_stay(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    cli(*asked(provider))
    own = scores_of(folder / "run")
    (folder / "again.py").write_text(
        CAPITALS.replace('ms.regex("answer to the prompt [0-7]")', "lambda reply, row: 0.25")
    )
    done = cli("score", "run", "--task", "again.py", "--json")
    assert json.loads(done.out)["run"]["capitals"]["models"]["sim/open"]["mean"] == 0.25
    assert "these are only shown" in done.err and scores_of(folder / "run") == own
    said = "Items count by the best of their trials, not by the mean."
    assert said in cli("score", "run", "--combine", "any").out and said not in cli("score", "run").out
    assert scores_of(folder / "run") == own
    assert cli("report", "run", "--combine", "any").code == 0 and said in (folder / "run/report.html").read_text()


def test_a_load_test_takes_the_prompts_of_a_task(folder: Path) -> None:
    source = of_dataset(f"{folder}/capitals.py:capitals", is_exact=True)
    assert source.told == "20 questions of the task capitals, to the letter"
    prompts = {str(prompt) for prompt in islice(source.prompts(Random(1), Random(2)), 20)}
    assert "What is the capital of country 3? Answer in one word." in prompts and len(prompts) == 20
    with pytest.raises(UsageError, match="expected the file that declares the task"):
        of_dataset("task", is_exact=True)


TABLE = """
[task]
data = "capitals.csv"
prompt = "What is the capital of {country}? Answer in one word."
trials = 3
[task.score]
scorer = "regex"
pattern = "answer to the prompt [0-7]"
"""


def test_a_table_in_toml_is_the_same_task_with_flags_or_with_a_run_beside_it(
    cli: CommandLine, provider: Provider, folder: Path
) -> None:
    cli(*asked(provider))
    (folder / "capitals.toml").write_text(TABLE)
    done = cli(*asked(provider, "capitals.toml"))
    assert done.code == 0 and "all there before" in done.out
    where = f'[run]\nout = "whole"\ncache = "cache"\n[run.task]\nmodel = {list(MODELS)}\n'
    lanes = f'[providers.sim]\nkind = "openai"\nbase_url = "{provider.base_url}"\n'
    (folder / "whole.toml").write_text(TABLE.replace("[task]", '[task]\nname = "capitals"') + where + lanes)
    done = cli("run", "whole.toml", "--no-progress", "--no-report")
    assert done.code == 0, done.err
    assert cli("resume", "whole", "--no-progress", "--no-report").code == 0
    own, same = scores_of(folder / "run"), scores_of(folder / "whole")
    assert {name: entry["mean"] for name, entry in own["capitals"]["models"].items()} == {
        name: entry["mean"] for name, entry in same["capitals"]["models"].items()
    }


def test_the_page_names_the_file_as_run_takes_it(cli: CommandLine, provider: Provider, folder: Path) -> None:
    assert cli(*asked(provider, "capitals.py", "--limit", "2")).code == 0
    assert cli("report", "run").code == 0
    page = (folder / "run/report.html").read_text()
    assert "millstream run capitals.py --model sim/open sim/steady --limit 2" in page
