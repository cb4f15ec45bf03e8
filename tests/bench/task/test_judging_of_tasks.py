"""`judge` over a task's answers: the task's own rubric and grades with any judge, and what can't be judged so."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done, Provider, lines_of

import millstream as ms
from millstream.bench.evaluation.door.kept_answer import Verdict
from millstream.bench.evaluation.reading.judging.panel import JudgeReplies
from millstream.bench.task.judge_call import JudgeCall
from millstream.bench.task.judging import GradeJudging
from millstream.bench.task.options import Readings
from millstream.bench.task.records import Record

OWN, OTHER = "sim/grader", "sim/sloppy-judge"
ROWS = 6
TASK = """
import millstream as ms

capitals = ms.Task(
    data=[{{"country": f"country {{n}}"}} for n in range({rows})],
    prompt={prompt},
    score={score},
)
"""
GRADED = f'ms.judge("{OWN}", "Is the answer to {{country}} right?", grades={{"yes": 1, "no": 0}})'
PLAIN = '"What is the capital of {country}? Answer in one word."'


def run(cli: CommandLine, provider: Provider, folder: Path, score: str = GRADED, prompt: str = PLAIN) -> Done:
    (folder / "capitals.py").write_text(TASK.format(rows=ROWS, score=score, prompt=prompt))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    return cli("run", "capitals.py", "--model", "sim/open", *where)


def judge(cli: CommandLine, *words: str) -> Done:
    return cli("judge", "run", *words, "--cache", "cache", "--no-progress")


def lines(folder: Path) -> list[dict[str, Any]]:
    return lines_of(folder / "run/judgements.jsonl")


@pytest.mark.parametrize(
    "prompt",
    [
        PLAIN,
        'lambda row: "What of " + row["country"] + "?"',
        'lambda row: [{"role": "system", "content": "Be short."}, {"role": "user", "content": row["country"]}]',
        'lambda row: [{"role": "user", "content": ["What of ", row["country"]]}, {"role": "user", "content": "Say."}]',
    ],
)
def test_the_runs_own_judge_reads_the_same_prompt_again_whatever_the_tasks_prompt_is(
    cli: CommandLine, provider: Provider, tmp_path: Path, prompt: str
) -> None:
    done = run(cli, provider, tmp_path, prompt=prompt)
    assert done.code in (0, 3), done.err
    sent = provider.calls()
    again = judge(cli, "--judge", OWN)
    assert again.code == 0, again.err
    assert provider.calls() == sent and "all from the cache; nothing was sent" in again.out
    grades = {line["id"]: line["judge"][0] for line in lines_of(tmp_path / "run/records.jsonl")}
    assert len(lines(tmp_path)) == ROWS
    for line in lines(tmp_path):
        own = grades[line["id"]]
        assert (line["score"], line["rationale"], line["grade"]) == (own["score"], own["reason"], own["grade"])
        assert line["stance"] == own["grade"]
    assert cli("verify", "run").code == 0


def test_variants_shuffled_options_and_figures_are_no_hindrance(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    text = TASK.format(
        rows=ROWS,
        prompt='{"plain": "Of {country}?\\n{options}", "fun": lambda row: row["country"] + " ".join(row["options"])}',
        score=f'{{"letter": ms.choice("A", options="{{options}}", shuffle=1), "good": {GRADED}}}, '
        'figures={"f": ms.f1()}',
    )
    (tmp_path / "capitals.py").write_text(text.replace('{n}"}', '{n}", "options": ["x", "y"]}'))
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    assert cli("run", "capitals.py", "--model", "sim/open", *where).code == 3  # no answer names a letter
    sent = provider.calls()
    done = judge(cli, "--judge", OWN)
    assert done.code == 0 and provider.calls() == sent == 4 * ROWS, done.err
    assert cli("report", "run").code == 3 and cli("verify", "run").code == 0


def test_another_judge_grades_by_the_tasks_rubric_and_the_runs_scores_stay(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    run(cli, provider, tmp_path)
    before = (tmp_path / "run/scores.json").read_bytes()
    done = judge(cli, "--judge", OTHER, "--json")
    made = lines(tmp_path)
    assert Counter(line["judge"] for line in made) == {OTHER: ROWS}
    # That judge returns no grade, so each answer is asked about twice and has no score.
    assert all(line["score"] is None and line["repaired"] for line in made)
    assert (tmp_path / "run/scores.json").read_bytes() == before
    panel = json.loads(done.out)["panel"]
    assert panel["judges"] == [OWN, OTHER]


def test_a_judge_of_whom_nothing_can_be_read_ends_with_3_each_time(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    run(cli, provider, tmp_path)
    done = judge(cli, "--judge", OTHER)
    unread = f"{OTHER}: {ROWS} of its {ROWS} replies (100.0%) were unreadable and count as no verdict"
    assert done.code == 3 and "exit code 3: finished, but not everything was measured" in done.out
    assert done.out.count(unread) == 2  # in the summary of its calls, and in the panel
    told = judge(cli, "--judge", OTHER, "--json")
    assert told.code == 3 and json.loads(told.out)["runs"][0]["unmeasured"] == [unread]
    assert cli("judge", "run").code == 3


def test_a_panel_is_unmeasured_from_half_of_a_judges_replies_on() -> None:
    assert [JudgeReplies("lab/a", 6, unread).is_unmeasured for unread in (0, 2, 3, 6)] == [False, False, True, True]
    assert not JudgeReplies("lab/a", 0, 0).is_unmeasured


def test_a_task_whose_judge_is_one_of_several_scorers_has_that_one_judged(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    both = f'{{{{"found": ms.regex("a"), "graded": {GRADED}}}}}'.replace("{{", "{").replace("}}", "}")
    run(cli, provider, tmp_path, score=both)
    assert judge(cli, "--judge", OWN).code == 0
    scores = {line["id"]: line["scores"]["graded"] for line in lines_of(tmp_path / "run/records.jsonl")}
    assert {line["id"]: line["score"] for line in lines(tmp_path)} == scores


@pytest.mark.parametrize(
    ("score", "prompt", "told"),
    [
        ('ms.regex("a")', PLAIN, "no judge reads the answers of capitals, its scores come from regex"),
        (
            GRADED,
            'lambda row: [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}, '
            '{"role": "user", "content": row["country"]}]',
            "its records don't say which turns are shots",
        ),
    ],
)
def test_what_no_judge_can_read_again_is_refused_in_one_line(
    cli: CommandLine, provider: Provider, tmp_path: Path, score: str, prompt: str, told: str
) -> None:
    run(cli, provider, tmp_path, score=score, prompt=prompt)
    sent = provider.calls()
    done = judge(cli, "--judge", OWN)
    assert (done.code, done.err.count("\n"), provider.calls()) == (2, 1, sent)
    assert told in done.err and not (tmp_path / "run/judgements.jsonl").exists()


def test_grades_with_the_same_score_are_different_verdicts() -> None:
    grades = {"right": 1.0, "nearly": 1.0, "wrong": 0.0}
    described = ms.judge("lab/own", "Is {country} right?", grades=grades).describe()
    judging = GradeJudging({"specification": {"score": {"graded": described}}}, Readings())

    def graded(grade: str | None, score: float | None) -> Verdict:
        call = JudgeCall(scorer="graded", model="lab/own", grade=grade, score=score)
        return judging.verdict(Record(id="a/0", model="lab/m", judge=(call,)))

    assert [graded("Right", 1.0), graded(" nearly", 1.0), graded("wrong", 0.0), graded(None, None)] == [
        Verdict("right", 1.0),
        Verdict("nearly", 1.0),
        Verdict("wrong", 0.0),
        Verdict(None, None),
    ]


def test_the_table_of_a_run_shows_the_judges_part_of_a_cost_apart(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "capitals.py").write_text(TASK.format(rows=ROWS, score=GRADED, prompt=PLAIN))
    prices = "".join(f'"{name}" = {{ input = 10.0, output = 10.0 }}\n' for name in ("sim/open", OWN))
    (tmp_path / "prices.toml").write_text(f"[prices]\n{prices}")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report", "--no-progress")
    told = cli("run", "capitals.py", "--model", "sim/open", *where, "--config", "prices.toml").out.splitlines()
    assert told[0].split("  ")[-1] == "of which judges"
    whole, judges = (float(cell.removeprefix("$")) for cell in told[1].split()[-2:])
    lines = lines_of(tmp_path / "run" / "records.jsonl")
    assert whole == pytest.approx(sum(line["cost"] for line in lines), abs=1e-4)
    assert judges == pytest.approx(sum(line["cost_judge"] for line in lines), abs=1e-4)
    assert 0 < judges < whole
