"""Judges that refuse or ignore a temperature, through every door: none that the table knows is sent a call in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Done, lines_of
from strict_models import StrictModels

# Chameleon's pages are read in processes of their own.
pytestmark = [pytest.mark.needs_benchmark("millstone", "chameleon", "sycon", "task"), pytest.mark.process]

REFUSING = ("anthropic/claude-sonnet-5-5", "openai/gpt-6-sol")
JUDGES = (*REFUSING, "gemini/gemini-3.8-flash")
SUBJECT, UNKNOWN = "openai/gpt-4.1-mini", "openai/new-model"
ROWS = 3
TASK = """
import millstream as ms

capitals = ms.Task(
    data=[{{"country": f"country {{n}}"}} for n in range({rows})],
    prompt="What is the capital of {{country}}?",
    score=ms.judge("{judge}", "Is the answer to {{country}} right?"{more}),
)
"""
TOML = """
[task]
data = [{{ country = "Peru" }}, {{ country = "France" }}]
prompt = "What is the capital of {{country}}?"
[task.score]
scorer = "judge"
model = "{judge}"
rubric = "Is the answer to {{country}} right?"
{more}
"""
SYCON = ("sycon", "--model", SUBJECT, "--setting", "debate", "--limit", "1", "--judge")
CHAMELEON = (
    *("chameleon", "--model", SUBJECT, "--conversations", "1", "--turns", "2", "--pages", "2", "--temperature", "0"),
    *("--search", "corpus", "--judge"),
)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StrictModels]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k")
    with StrictModels() as served:
        yield served


def run(cli: CommandLine, models: StrictModels, verb: str, *words: str, out: str = "run") -> Done:
    where = ("--base-url", models.address, "--cache", "cache", "--out", out)
    return cli(verb, *words, *where, *(("--no-report", "--no-progress") if verb == "run" else ()))


def task(folder: Path, judge: str, more: str = "", name: str = "mine.py", text: str = TASK) -> str:
    (folder / name).write_text(text.format(rows=ROWS, judge=judge, more=more))
    return name


def note(judge: str) -> str:
    return f"the judge {judge} takes no temperature: none is sent"


@pytest.mark.long
def test_a_judge_that_the_table_knows_to_take_no_temperature_is_sent_none_through_every_door(
    cli: CommandLine, models: StrictModels, tmp_path: Path
) -> None:
    claude, gpt, gemini = JUDGES
    doors: dict[str, tuple[str, tuple[str, ...]]] = {
        "python": (claude, (task(tmp_path, claude), "--model", SUBJECT)),
        "toml": (gpt, (task(tmp_path, gpt, name="mine.toml", text=TOML), "--model", SUBJECT)),
        "sycon": (gemini, (*SYCON, gemini)),
        "chameleon": (claude, (*CHAMELEON, claude)),
    }
    for name, (judge, words) in doors.items():
        planned = run(cli, models, "plan", *words, out=name)
        assert planned.code == 0 and note(judge) in planned.err, (name, planned.err)
        done = run(cli, models, "run", *words, out=name)
        assert done.code == 0 and note(judge) in done.err, (name, done.err, done.out)
    asked = [each for judge in JUDGES for each in models.of(judge)]
    assert {each.temperature for each in asked} == {None} and models.refused() == []
    # Gemini and Anthropic's protocol: the longest answer of the model, never the authors' ten tokens.
    assert all(each.max_tokens is None or each.max_tokens > 10 for each in asked)
    assert {each["judge"][0]["temperature"] for each in lines_of(tmp_path / "python/records.jsonl")} == {None}
    for name in ("sycon", "chameleon"):
        assert {each["judge_temperature"] for each in lines_of(tmp_path / name / "records.jsonl")} == {None}


@pytest.mark.parametrize("words", [("mine.py", "--model", SUBJECT), (*SYCON, SUBJECT), (*CHAMELEON, SUBJECT)])
def test_kept_answers_are_judged_anew_by_judges_that_take_no_temperature(
    cli: CommandLine, models: StrictModels, tmp_path: Path, words: tuple[str, ...]
) -> None:
    task(tmp_path, SUBJECT)
    assert run(cli, models, "run", *words).code == 0
    judge = ("judge", "run", "--judge", *JUDGES, UNKNOWN, "--base-url", models.address, "--cache", "cache")
    planned = cli(*judge, "--plan")
    assert planned.code == 0 and all(note(judge) in planned.err for judge in JUDGES), planned.err
    done = cli(*judge, "--no-progress")
    assert done.code == 0 and all(note(judge) in done.err for judge in JUDGES), done.err
    # Of an unknown one the first call decides for all.
    assert [(each.model, each.temperature) for each in models.refused()] == [("new-model", 0.0)]
    assert {each.temperature for judge in JUDGES for each in models.of(judge)} == {None}
    lines = lines_of(tmp_path / "run/judgements.jsonl")
    assert {(each["judge"], each["judge_temperature"]) for each in lines} == {
        (each, None) for each in (*JUDGES, UNKNOWN)
    }
    assert cli("judge", *judge[1:], "--no-progress").code == 0
    assert cli("verify", "run").code == 0


def test_a_temperature_that_a_judge_of_chameleon_refuses_is_told_by_the_summary_and_the_page(
    cli: CommandLine, models: StrictModels, tmp_path: Path
) -> None:
    for judge, text in ((UNKNOWN, "not sent"), (SUBJECT, "0")):
        subject = (*CHAMELEON[:2], "openai/gpt-4o", *CHAMELEON[3:])
        done = run(cli, models, "run", *subject, judge, out=text)
        sentence = f"the judge {judge} refused temperature 0: it judged 2 answers at its own"
        assert done.out.count(sentence) == (text == "not sent"), done.out
        assert cli("report", text, "--out", f"{text}-page").code == 0
        page = (tmp_path / f"{text}-page/report.html").read_text()
        assert f"<dt>Judge temperature</dt><dd>{text}</dd>" in page


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    ("name", "text", "more"), [("a.py", TASK, ", temperature=0.0"), ("a.toml", TOML, "temperature = 0.5")]
)
def test_a_temperature_that_is_set_for_a_judge_without_one_is_refused_before_anything_is_sent(
    cli: CommandLine, models: StrictModels, tmp_path: Path, judge: str, name: str, text: str, more: str
) -> None:
    for verb in ("plan", "run"):
        done = run(cli, models, verb, task(tmp_path, judge, more, name, text), "--model", SUBJECT)
        assert (done.code, models.asked) == (2, [])
        assert f"score score: the judge {judge} takes no temperature" in done.err, done.err
        assert "leave the judge's temperature out" in done.err and "--temperature" not in done.err


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("a.py", TASK, ", temperature=None"),
        ("b.py", TASK, ', temperature="none"'),
        ("a.toml", TOML, 'temperature = "none"'),
    ],
)
def test_a_task_says_that_its_judge_is_sent_no_temperature(
    cli: CommandLine, models: StrictModels, tmp_path: Path, name: str, text: str, more: str
) -> None:
    done = run(cli, models, "run", task(tmp_path, SUBJECT, more, name, text), "--model", "openai/gpt-4o")
    assert done.code == 0, done.err
    assert {each.temperature for each in models.of(SUBJECT)} == {None}
    kept = json.loads((tmp_path / "run/manifest.json").read_text())["specification"]["score"]["score"]
    assert kept["temperature"] is None
    assert cli("judge", "run", "--judge", SUBJECT, "--base-url", models.address, "--cache", "cache").code == 0
    assert {each.temperature for each in models.of(SUBJECT)} == {None}


def test_a_temperature_that_an_unknown_judge_rejects_is_told_with_what_to_do(
    cli: CommandLine, models: StrictModels, tmp_path: Path
) -> None:
    done = run(cli, models, "run", task(tmp_path, UNKNOWN, ", temperature=0.5"), "--model", SUBJECT)
    assert done.code == 3
    assert (
        f"the judge {UNKNOWN}: 400: Unsupported value" in done.out
        and "the model refuses temperature: leave it out, in" in done.out
    )
    assert len(models.refused()) == ROWS
