"""One's own evaluation to the end: all scores printed, two runs compared, a corrected scorer, a first task."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, lines_of, scores_of
from msgspec import structs

from millstream.bench.evaluation.door.run_figures import RowFigures, RunFigures
from millstream.bench.evaluation.reading.run_comparison import compared_runs, comparison_lines
from millstream.engine.pairs import Pair

TASK = """
import millstream as ms

rows = [{"id": f"r{n}", "n": n, "group": "odd" if n % 2 else "even"} for n in range(12)]
SCORE = {"right": ms.regex("answer to the prompt [0-7]"), "length": lambda reply, row: len(reply.text)}
"""
PLAIN = 'plain = ms.Task(data=rows, prompt="Number {n}?", score=SCORE, trials=2)\n'
POLITE = 'polite = ms.Task(data=rows, prompt="Please:\\nnumber {n}?", score=SCORE, trials=2)\n'


def asked(provider: Provider, what: str, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    return ("run", what, "--model", "sim/open", *where, *more)


def write(folder: Path, *tasks: str, name: str = "mine.py") -> None:
    (folder / name).write_text("".join((TASK, *tasks)))


def test_a_run_prints_what_score_prints_of_it(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    done = cli(*asked(provider, "mine.py", "--out", "run", "--no-report"))
    assert done.code == 0, done.err
    scores = scores_of(tmp_path / "run")["plain"]["models"]["sim/open"]
    assert set(scores["scores"]) == {"right", "length"} and set(scores["groups"]) == {"odd", "even"}
    printed = cli("score", "run").out
    for kind in ("scores", "groups"):
        for name, figure in scores[kind].items():
            [line] = [line for line in done.out.splitlines() if line.split()[:2] == ["sim/open", name]]
            assert f"{figure['mean']:.3f}" in line and line in printed


def test_a_run_that_measured_nothing_prints_no_table_about_nothing(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    provider.set_faults("unauthorized")
    done = cli(*asked(provider, "mine.py", "--out", "run"))
    assert done.code == 4
    first, *_, meaning = done.out.splitlines()
    assert first.startswith("24 questions are pending: sim/open refuses the key") and "millstream resume " in first
    assert meaning.startswith("exit code 4: ")
    assert "group" not in done.out and "95% interval" not in done.out


def test_two_tasks_of_a_file_run_together_in_a_new_folder_and_their_prompts_are_compared(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN, POLITE)
    folders = []
    for _ in range(2):
        done = cli(*asked(provider, "mine.py"))
        assert done.code == 0, done.err
        [line] = [line for line in done.err.splitlines() if "the run's folder is " in line]
        folders.append(tmp_path / line.split("the run's folder is ")[1].split()[0])
    first, second = folders
    assert first.parent == tmp_path / "runs" and first.name.endswith("-mine") and second.name == f"{first.name}-2"
    assert provider.calls() == 48
    for name in ("plain", "polite"):
        assert len(lines_of(first / name / "records.jsonl")) == 24
    means = [scores_of(first / name)[name]["models"]["sim/open"]["mean"] for name in ("plain", "polite")]
    assert "plain minus polite, paired by item: they differ in prompt alone" in done.out
    lines = done.out.splitlines()
    assert {"    - Number {n}?", "    + Please:", "    + number {n}?"} <= set(lines)
    difference = f"sim/open: {means[0] - means[1]:+.3f} (95% interval "
    [line] = [line for line in lines if line.startswith(difference)]
    assert "over 12 items, p = " in line
    page = (first / "report.html").read_text()
    assert "Runs compared" in page and "+ number {n}?</pre>" in page
    flips = (first / "tables/task-runs-flipped.csv").read_text().splitlines()[1:]
    by_item = {
        name: {row["item"]: 0.0 for row in lines_of(first / name / "records.jsonl")} for name in ("plain", "polite")
    }
    for name, values in by_item.items():
        for row in lines_of(first / name / "records.jsonl"):
            values[row["item"]] += row["score"] / 2
    flipped = {item for item in by_item["plain"] if (by_item["plain"][item] >= 0.5) != (by_item["polite"][item] >= 0.5)}
    assert flipped and {row.split(",")[0] for row in flips} == flipped
    assert all(item in done.out.partition(difference)[2] for item in flipped)


def test_runs_that_differ_in_more_than_one_option_have_a_difference_and_no_p(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN, POLITE)
    assert cli(*asked(provider, "mine.py:plain", "--out", "a", "--no-report")).code == 0
    assert cli(*asked(provider, "mine.py:plain", "--out", "again", "--no-report")).code == 0
    assert cli(*asked(provider, "mine.py:plain", "--out", "hot", "--temperature", "1", "--no-report")).code == 0
    assert cli(*asked(provider, "mine.py:polite", "--out", "b", "--max-tokens", "90", "--no-report")).code == 0
    out = cli("score", "a", "b").out
    assert "they differ in prompt, max_tokens (none; 90); it is the effect of no single option and has no p\n" in out
    [line] = [line for line in out.splitlines() if line.startswith("sim/open: ")]
    assert "over 12 items" in line and "p = " not in line
    assert "they differ in temperature (none; 1) alone" in cli("score", "a", "hot").out
    shots = 'shots=[("Number 70?", "70")], prompt='
    write(tmp_path, PLAIN.replace("prompt=", shots), POLITE.replace("prompt=", shots), name="shots.py")
    for name in ("plain", "polite"):
        assert cli(*asked(provider, f"shots.py:{name}", "--out", f"shots-{name}", "--no-report")).code == 0
    assert "they differ in shots (none; 70) alone" in cli("score", "a", "shots-plain").out
    assert "they differ in prompt, shots (none; 70); it is the effect of" in cli("score", "a", "shots-polite").out
    assert "they differ in prompt alone" in cli("score", "shots-plain", "shots-polite").out
    assert "a minus again, paired by item: made alike" in cli("score", "a", "again").out


def test_of_records_without_a_manifest_nobody_knows_what_they_differ_in(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    assert cli(*asked(provider, "mine.py", "--out", "a", "--no-report")).code == 0
    for name in ("b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "records.jsonl").write_bytes((tmp_path / "a/records.jsonl").read_bytes())
    for first in ("a", "b"):
        out = cli("score", first, "c").out
        assert f"{first} minus c, paired by item: how one of them was made is not known" in out
        assert "sim/open: +0.000" in out and "p = " not in out


def test_two_models_and_two_scorers_on_the_same_rows_are_treatments_and_other_rows_are_not_compared(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    assert cli(*asked(provider, "mine.py", "--out", "a", "--no-report")).code == 0
    other = asked(provider, "mine.py", "--out", "steady", "--no-report")
    assert cli(*("sim/steady" if word == "sim/open" else word for word in other)).code == 0
    write(tmp_path, PLAIN.replace("SCORE", 'ms.regex("answer to the prompt [0-3]")'), name="strict.py")
    assert cli(*asked(provider, "strict.py", "--out", "strict", "--no-report")).code == 0
    write(tmp_path, PLAIN.replace("data=rows", 'data=[{"id": f"r{n}", "n": n + 50} for n in range(9)]'), name="far.py")
    assert cli(*asked(provider, "far.py", "--out", "far", "--no-report")).code == 0
    out = cli("score", "a", "steady").out
    assert "they differ in model (sim/open; sim/steady) alone" in out and "sim/open minus sim/steady: " in out
    assert "p = " in cli("score", "a", "strict").out.rpartition("paired by item")[2]
    assert "not compared: a and far: no row of one with a score is in the other" in cli("score", "a", "far").out
    told = json.loads(cli("report", "a", "far", "--out", "both", "--json").out)["not_compared"]
    assert told == ["a and far: no row of one with a score is in the other"]


def test_a_corrected_scorer_reaches_records_scores_report_and_manifest_and_the_old_ones_stay(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    assert cli(*asked(provider, "mine.py", "--out", "run", "--no-report")).code == 0
    old = {name: (tmp_path / "run" / name).read_bytes() for name in ("records.jsonl", "scores.json", "manifest.json")}
    done = cli("rescore", "run", "--task", "mine.py", "--no-report")
    assert done.code == 0 and "nothing was changed" in done.err
    assert all((tmp_path / "run" / name).read_bytes() == data for name, data in old.items())
    write(tmp_path, PLAIN.replace("SCORE", 'ms.regex("answer to the prompt [0-3]")'))
    calls = provider.calls()
    done = cli("rescore", "run", "--task", "mine.py")
    assert done.code == 0 and provider.calls() == calls, done.err
    for name, data in old.items():
        stem, suffix = name.split(".")
        assert (tmp_path / "run" / f"{stem}-1.{suffix}").read_bytes() == data
    records, before = lines_of(tmp_path / "run/records.jsonl"), lines_of(tmp_path / "run/records-1.jsonl")
    changed = [new["id"] for new, was in zip(records, before, strict=True) if new["score"] != was["score"]]
    assert changed and "of 24 answers have other scores; before: run/scores-1.json, records-1.jsonl" in done.err
    assert [(new["id"], new["text"], new["keys"]) for new in records] == [
        (was["id"], was["text"], was["keys"]) for was in before
    ]
    proof = cli("verify", "run")
    assert proof.code == 0 and "ok: 24 records" in proof.out and "scored again on " in proof.out
    assert "scores-1.json" in proof.out and "mine.py" in proof.out
    page = (tmp_path / "run/report.html").read_text()
    assert "The answers were scored again on " in page and "Scored again" in page
    # The corrected file goes on with the run.
    done = cli("resume", "run", "--no-report", "--no-progress")
    assert done.code == 0 and "all there before; nothing was sent" in done.out, done.err
    path = tmp_path / "run/records-1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"trial":1', b'"trial":2', 1))
    assert cli("verify", "run").code == 5


@pytest.mark.parametrize(
    ("asks", "differ"),
    [(PLAIN.replace("Number", "A number"), "prompt, questions"), (PLAIN, "")],
    ids=["otherwise", "as"],
)
def test_a_rescoring_by_a_file_with_other_questions_says_that_no_run_goes_on_with_it(
    cli: CommandLine, provider: Provider, tmp_path: Path, asks: str, differ: str
) -> None:
    write(tmp_path, PLAIN)
    assert cli(*asked(provider, "mine.py", "--out", "run", "--no-report", "--trials", "3")).code == 0
    write(tmp_path, asks.replace("SCORE", 'ms.regex("answer to the prompt [0-3]")'))
    done = cli("rescore", "run", "--task", "mine.py", "--no-report")
    said = f"mine.py asks otherwise than this run did ({differ}): `resume` and `retry` will refuse it\n"
    assert done.code == 0 and (said in done.err) == ("asks otherwise" in done.err) == bool(differ), done.err
    assert cli("resume", "run", "--no-report", "--no-progress").code == (2 if differ else 0)


def test_a_rescoring_says_that_the_common_report_of_several_runs_has_the_old_scores(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    for name in ("A", "B", "apart"):
        assert cli(*asked(provider, "mine.py", "--out", f"three/{name}", "--no-report")).code == 0
    assert cli("report", "three/A", "three/B", "--combine", "any").code == 0
    write(tmp_path, PLAIN.replace("SCORE", 'ms.regex("answer to the prompt [0-3]")'))
    done = cli("rescore", "three/A", "--task", "mine.py")
    again = "millstream report three/A three/B --combine any"
    assert f"three/report.html still has the old scores: {again}\n" in done.err
    assert cli(*again.split()[1:]).code == 0
    assert "old scores" not in cli("rescore", "three/apart", "--task", "mine.py").err


def test_a_rescoring_that_is_killed_before_its_manifest_is_finished_by_the_same_command(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN.replace("SCORE", 'ms.regex("answer to the prompt [0-7]")'))
    assert cli(*asked(provider, "mine.py", "--out", "run", "--no-report")).code == 0
    manifest = (tmp_path / "run/manifest.json").read_bytes()
    write(tmp_path, PLAIN.replace("SCORE", 'ms.regex("answer to the prompt [0-3]")'))
    assert cli("rescore", "run", "--task", "mine.py", "--no-report").code == 0
    kept = (tmp_path / "run/records-1.jsonl").read_bytes()
    scores = (tmp_path / "run/scores.json").read_bytes()
    (tmp_path / "run/manifest.json").write_bytes(manifest)
    assert cli("verify", "run").code == 5
    assert cli("rescore", "run", "--task", "mine.py", "--no-report").code == 0
    assert cli("verify", "run").code == 0
    assert (tmp_path / "run/records-1.jsonl").read_bytes() == kept
    assert (tmp_path / "run/scores.json").read_bytes() == scores


@pytest.mark.parametrize("model", ["", "sim/scholar"])
def test_init_writes_a_task_that_runs_as_it_is_and_prints_how(
    cli: CommandLine, provider: Provider, tmp_path: Path, model: str
) -> None:
    done = cli("init", *(("--model", model) if model else ()))
    assert done.code == 0 and cli("init").code == 2
    command = done.out.splitlines()[-1].split()
    assert command[:3] == ["millstream", "run", "first.py"]
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    done = cli(*command[1:], *where)
    assert done.code == 0, done.err
    assert "12 of 12" in done.out and "Americas" in done.out
    assert ("sim/pupil" in done.out) == (not model)


def test_the_report_shows_the_task_itself_in_place_of_digests(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    judged = (
        'mine = ms.Task(data=rows, system="Be <brief>.", prompt="Please:\\nnumber {n}?", trials=3, max_tokens=50,'
        ' score={"clear": ms.judge("sim/grader", "Is {n} named?"), "found": ms.regex("[0-7]")})\n'
    )
    write(tmp_path, judged)
    assert cli(*asked(provider, "mine.py", "--out", "run")).code == 0
    made = (tmp_path / "run/report.html").read_text().rpartition("How it was made<a")[2]
    for text in ("Please:\nnumber {n}?", "Be &lt;brief&gt;.", "Is {n} named?", "sim/grader", "pattern [0-7]"):
        assert text in made, text
    assert "<dt>Trials</dt><dd>3</dd>" in made and "<dt>Max tokens</dt><dd>50</dd>" in made
    assert "Its digest" not in made and "Specification" not in made


def test_a_manifest_has_the_versions_that_packages_declare(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write(tmp_path, PLAIN)
    assert cli(*asked(provider, "mine.py", "--out", "run", "--no-report")).code == 0
    told = json.loads((tmp_path / "run/manifest.json").read_text())["versions"]
    packages = told.keys() - {"millstream", "python"}
    assert {name: told[name] for name in packages} == {name: version(name) for name in packages}
    assert packages >= {"msgspec", "numpy", "orjson", "uvloop"}


def run_of(names: list[str], values: list[float], **options: str) -> RunFigures:
    figures = {f"i{at}": value for at, value in enumerate(values)}
    rows = {name: RowFigures(Pair(name, None), figures, are_shares=True) for name in names}
    return RunFigures(rows=rows, options=options, within=(0.0, 1.0), has_right=True)


def test_what_is_not_compared_is_said() -> None:
    ones, zeros = [1.0] * 6, [0.0, 1.0] * 3
    many = {f"r{at}": run_of(["m"], zeros if at else ones, trials="2") for at in range(6)}
    assert comparison_lines(compared_runs(many))[0] == "Of more than 5 runs, each is compared with the first alone."
    assert len(compared_runs(many)) == 5 and len(compared_runs(dict([*many.items()][:5]))) == 10
    last = RunFigures(rows={"m": RowFigures(Pair("m", None), {"i4": 1.0, "i5": 0.0})}, options={})
    some = compared_runs({"a": run_of(["m"], ones), "b": run_of(["m"], ones[:3]), "c": last})
    assert [each.why_not for each in some] == ["", "", "b and c: no row of one with a score is in the other"]
    assert comparison_lines([each for each in some if each.rows])[0].startswith("a minus b")
    [crossed] = compared_runs(
        {"a": run_of([f"a{at}" for at in range(7)], ones), "b": run_of([f"b{at}" for at in range(5)], zeros)}
    )
    assert len(crossed.rows) == 30 and "(5 other pairs of models left out)" in crossed.sentence


@pytest.mark.parametrize(
    ("values", "other", "scales"),
    [
        ([0.0, 1.0], [3.0, 5.0], "0 to 1 and 3 to 5"),
        ([0.25, 0.5], [25.0, 50.0], "0.25 to 0.5 and 25 to 50"),
        ([0.25, 0.5], [0.0, 1.0], ""),
    ],
)
def test_two_scorers_of_which_one_gives_what_the_other_never_gives_are_not_compared(
    values: list[float], other: list[float], scales: str
) -> None:
    runs = {"a": run_of(["r0", "r1"], values, scorer="f"), "b": run_of(["r0", "r1"], other, scorer="g")}
    [compared] = compared_runs({name: structs.replace(run, within=None) for name, run in runs.items()})
    assert compared.why_not == (f"a and b: their scores have other scales ({scales})" if scales else "")
    same = {name: structs.replace(run, within=None, options={}) for name, run in runs.items()}
    assert not compared_runs(same)[0].why_not


def test_of_two_plain_scorers_it_is_said_that_nobody_knows_whether_they_have_one_scale() -> None:
    runs = {"a": run_of(["m"], [1.0, 5.0] * 5, scorer="f"), "b": run_of(["m"], [0.0, 100.0] * 5, scorer="g")}
    [compared] = compared_runs({name: structs.replace(run, within=None) for name, run in runs.items()})
    assert compared.sentence.endswith("; it is not known whether scores 1 to 5 and 0 to 100 have one scale")
    assert compared.rows[0].entry["p"] is None
    same = {name: structs.replace(run, within=None, options={"prompt": name}) for name, run in runs.items()}
    [compared] = compared_runs(same)
    assert compared.sentence.endswith("alone") and compared.rows[0].entry["p"] is not None


def test_a_treatment_has_the_exact_p_of_its_flips_and_several_models_share_it_by_holm() -> None:
    # Nine flips, all one way: 2 / 2**9; of two models, twice that.
    first, second = run_of(["m"], [1.0] * 9 + [0.0], prompt="A"), run_of(["m"], [0.0] * 10, prompt="B")
    [compared] = compared_runs({"a": first, "b": second})
    [row] = compared.rows
    assert row.entry["p_adjusted"] == pytest.approx(2 / 2**9) and row.entry["difference"] == pytest.approx(0.9)
    assert [flip.item for flip in row.flips] == [f"i{at}" for at in range(9)]
    both = {"a": run_of(["m", "n"], [1.0] * 9 + [0.0], prompt="A"), "b": run_of(["m", "n"], [0.0] * 10, prompt="B")}
    [compared] = compared_runs(both)
    assert [row.entry["p_adjusted"] for row in compared.rows] == pytest.approx([4 / 2**9] * 2)
    [other] = compared_runs({"a": first, "b": run_of(["m"], [0.0] * 10, prompt="B", trials="3")})
    assert other.rows[0].entry["p_adjusted"] is None


def test_a_p_says_whether_holm_adjusted_it_and_over_what() -> None:
    def line(models: list[str]) -> str:
        a, b = ("first", [1.0] * 6 + [0.0] * 4), ("second", [0.0] * 6 + [1.0] * 4)
        runs = {name: run_of(models, values, prompt=name) for name, values in (a, b)}
        return next(text for text in comparison_lines(compared_runs(runs)) if text.startswith("m: "))

    assert line(["m"]).endswith(" over 10 items, p = 0.754")
    assert line(["m", "n"]).endswith(" over 10 items, p = 1 (Holm over 2 models; 0.754 without)")
