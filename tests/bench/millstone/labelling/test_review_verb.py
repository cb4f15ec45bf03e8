"""`review` without a terminal: the sample as a CSV, its labels read back, and what is said of their agreement."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from answered_run import answered_run
from command_line import CommandLine, Done, lines_of

from millstream.bench.millstone.grid import GridItem
from millstream.bench.millstone.work import SAMPLE
from millstream.engine.runs.journal import sealed

REVIEW = ("review", "run", "--csv", "run/review.csv")
MODELS = ("sim/open", "sim/shut")


def text_of(item: GridItem) -> str:
    """Most answers are plain. In one configuration the two readings differ; in one there is no letter."""
    if item.config == "balanced-1":
        return "My position against it stands."
    if item.config == "balanced-2":
        return "I would rather not say."
    return f"position <<{'AB'[(item.template + item.trial) % 2]}>>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return answered_run(tmp_path / "run", text_of, MODELS)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def save(path: Path, rows: Iterable[dict[str, str]]) -> None:
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def fill_in(path: Path, label_of: Callable[[dict[str, str]], str]) -> None:
    save(path, ({**row, "label": label_of(row)} for row in rows_of(path)))


def as_a_person_reads(row: dict[str, str]) -> str:
    for letter in "AB":
        if f"<<{letter}>>" in row["text"]:
            return letter
    return "o"


def refused(done: Done, code: int = 2) -> str:
    """The one line that an error is."""
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("millstream: ") and done.err.count("\n") == 1, done.err
    return done.err


def test_without_a_terminal_the_sample_is_written_into_the_folder(cli: CommandLine, folder: Path) -> None:
    done = cli(*REVIEW, "--sample", "50")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("run/review.csv: 50 answers are written: fill in `label` with A, B or O")
    assert "A ' in front of a cell keeps a spreadsheet from computing it." in done.out
    rows = rows_of(folder / "review.csv")
    records = {(line["model"], line["id"]): line for line in lines_of(folder / "records.jsonl")}
    assert len(rows) == 50 and sum(row["model"] == "sim/open" for row in rows) == 25
    for row in rows:
        record = records[row["model"], row["id"]]
        assert (row["text"], row["issue"], row["label"]) == (record["text"], record["issue"], "")
        question = json.loads((SAMPLE / f"{row['issue']}.json").read_text())["paraphrases"][record["template"] - 1]
        assert row["question"] == question["question"]
    assert "stance" not in rows[0] and "letter" not in rows[0]


def test_labels_that_were_filled_in_are_compared_with_both_readings(cli: CommandLine, folder: Path) -> None:
    assert cli("review", "run", "--csv", "l.csv").code == 0
    fill_in(Path("l.csv"), as_a_person_reads)
    done = cli("review", "run", "--csv", "l.csv", "--rater", "ann")
    assert (done.code, done.err) == (0, "")
    # 12 answers a model are an A to the paper's reading and to nobody else: 240 of 264 agree, chance gives
    # (108 x 132 + 108 x 108 + 48 x 24) / 264² = 0.3884, so kappa is (0.9091 - 0.3884) / (1 - 0.3884).
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert rows[0] == "l.csv: 264 of 264 answers are labelled by ann"
    for row in (
        "ann paper all 264 90.9% 86.8% to 94.1% 0.851 0.784 to 0.903 0",
        "ann careful all 264 100.0% 98.6% to 100.0% 1.000 0.978 to 1.000 0",
        "ann paper sim/open 132 90.9% 84.7% to 95.2% 0.851 0.749 to 0.922 -",
        # In the run: 264 answers, none of them left out.
        "ann paper all 264 0 90.9% 86.8% to 94.1% 0.851 0.784 to 0.903",
        "ann paper sim/shut 132 0 90.9% 84.7% to 95.2% 0.851 0.749 to 0.922",
        # 132 answers are an A to the paper's reading and 108 of them to the person; nobody else's is.
        "ann paper all A 108 100.0% 96.6% to 100.0% 132 81.8% 74.2% to 88.0% 0.818 0.736 to 0.882",
    ):
        assert row in rows, done.out
    assert "\nlabel \\ paper    A    B  other\nA              108    0      0\n" in done.out
    assert "\n\nlabel \\ careful  " in done.out


def test_the_json_holds_every_figure(cli: CommandLine, folder: Path) -> None:
    told = json.loads(cli(*REVIEW, "--sample", "60", "--json").out)
    assert (told["sample"], told["labelled"]) == (60, 0)
    assert told["readings"]["paper"]["share"] is None and told["readings"]["paper"]["share_ci95"] == [None, None]
    fill_in(folder / "review.csv", as_a_person_reads)
    told = json.loads(cli(*REVIEW, "--json").out)
    assert (told["folder"], told["file"], told["labelled"]) == ("run", "run/review.csv", 60)
    paper, careful = told["readings"]["paper"], told["readings"]["careful"]
    wrong = sum("against" in row["text"] for row in rows_of(folder / "review.csv"))
    assert wrong > 0
    assert (paper["labelled"], paper["agree"], paper["share"]) == (60, 60 - wrong, (60 - wrong) / 60)
    assert paper["confusion"]["other"]["A"] == wrong
    assert paper["share_ci95"][0] < paper["share"] < paper["share_ci95"][1]
    assert paper["kappa_ci95"][0] < paper["kappa"] < paper["kappa_ci95"][1]
    assert (careful["share"], careful["kappa"]) == (1, 1)
    assert {name: one["labelled"] for name, one in paper["models"].items()} == dict.fromkeys(MODELS, 30)


def test_kappa_of_a_single_letter_is_said_to_be_undefined(cli: CommandLine, folder: Path) -> None:
    cli(*REVIEW)
    save(
        folder / "review.csv",
        ({**row, "label": "A"} for row in rows_of(folder / "review.csv") if row["text"] == "position <<A>>"),
    )
    done = cli(*REVIEW)
    assert "100.0%" in done.out and "undefined" in done.out
    assert done.out.endswith("kappa is undefined where labels and reading have one and the same letter throughout\n")
    assert json.loads(cli(*REVIEW, "--json").out)["readings"]["paper"]["kappa"] is None


def test_a_sample_larger_than_the_run_is_all_of_it(cli: CommandLine, folder: Path) -> None:
    done = cli(*REVIEW)
    assert done.code == 0
    assert done.err == "millstream: 500 answers asked for, 264 are there: the sample is all of them\n"
    assert len(rows_of(folder / "review.csv")) == 264


def test_a_run_that_read_carefully_is_compared_by_that_first(cli: CommandLine, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["specification"]["stance"] = "careful"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    cli(*REVIEW, "--sample", "50")
    assert list(json.loads(cli(*REVIEW, "--json").out)["readings"]) == ["careful", "paper"]


def test_records_of_another_program_can_be_labelled(cli: CommandLine, folder: Path) -> None:
    (folder / "manifest.json").unlink()
    done = cli(*REVIEW, "--sample", "50")
    assert (done.code, done.err) == (0, "")
    assert {row["question"] for row in rows_of(folder / "review.csv")} == {""}
    fill_in(folder / "review.csv", as_a_person_reads)
    told = json.loads(cli(*REVIEW, "--json").out)
    assert list(told["readings"]) == ["recorded", "paper", "careful"]
    assert told["readings"]["recorded"]["agree"] == told["readings"]["paper"]["agree"]


def test_answers_read_by_the_wordings_are_shown_with_their_questions(cli: CommandLine, tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "data")
    issue = tmp_path / "data/bottle-deposits.json"
    content = json.loads(issue.read_text())
    first = content["paraphrases"][0]
    first["orientation"] = "con" if first["orientation"] == "pro" else "pro"
    issue.write_text(json.dumps(content))
    answered_run(tmp_path / "run", text_of, dataset=tmp_path / "data", fix_orientation=True)
    assert cli(*REVIEW, "--sample", "9").err == ""
    assert all(row["question"] for row in rows_of(tmp_path / "run/review.csv"))


def test_a_data_set_that_cannot_be_reached_or_has_changed_leaves_the_questions_out(
    cli: CommandLine, tmp_path: Path
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "data")
    answered_run(tmp_path / "run", text_of, dataset=tmp_path / "data")
    assert cli("review", "run", "--csv", "whole.csv", "--sample", "9").err == ""
    issue = tmp_path / "data/bottle-deposits.json"
    issue.write_text(issue.read_text().replace("bottle", "can"))
    done = cli("review", "run", "--csv", "changed.csv", "--sample", "9")
    assert (
        done.code == 0
        and "shown without their questions, since the data set is no longer the one that was asked" in done.err
    )
    shutil.rmtree(tmp_path / "data")
    done = cli("review", "run", "--csv", "gone.csv", "--sample", "9")
    assert done.code == 0 and "shown without their questions, since the data set is no longer where it was" in done.err
    for name, has_question in (("whole", True), ("changed", False), ("gone", False)):
        assert [bool(row["question"]) for row in rows_of(tmp_path / f"{name}.csv")] == [has_question] * 9


# What can be wrong


def test_a_folder_that_holds_neither_a_run_nor_records_is_refused(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for where in ("nowhere", "empty", "run/records.jsonl"):
        said = f"millstream: {where}: expected a run's folder, or another that holds a records.jsonl, got none there\n"
        assert refused(cli("review", where)) == refused(cli("review", where, "--csv", "labels.csv")) == said
    assert "holds several runs (run): name one, as run" in refused(cli("review", "."))


def test_a_run_without_answers_is_refused(cli: CommandLine, folder: Path) -> None:
    (folder / "records.jsonl").write_bytes(b"")
    assert "expected answers with a text in its records, got none: nothing to label" in refused(cli(*REVIEW))
    (folder / "records.jsonl").unlink()
    assert "expected a run with answers, got no records.jsonl: nothing to label" in refused(cli(*REVIEW))
    assert not (folder / "review.csv").exists()


def test_a_damaged_record_is_told_before_anything_is_written(cli: CommandLine, folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"position <<A>>", b"position <<B>>", 1))
    assert "is damaged" in refused(cli(*REVIEW), 5)
    assert not (folder / "review.csv").exists()


def test_labels_of_another_run_are_refused(cli: CommandLine, folder: Path, tmp_path: Path) -> None:
    answered_run(tmp_path / "other", text_of, ("sim/steady",))
    cli("review", "other", "--csv", "l.csv", "--sample", "9")
    before = Path("l.csv").read_bytes()
    line = refused(cli("review", "run", "--csv", "l.csv"))
    assert "l.csv line 2: expected an answer of run, got " in line and "of sim/steady (9 of 9 rows" in line
    assert line.endswith("is it a sample of another run?\n")
    assert Path("l.csv").read_bytes() == before


def test_labels_of_another_sample_are_refused_where_one_is_asked_for(cli: CommandLine, folder: Path) -> None:
    cli(*REVIEW, "--sample", "30")
    for more, asked in (
        (("--sample", "10"), "--sample 10 --seed 0"),
        (("--sample", "30", "--seed", "1"), "--sample 30 --seed 1"),
    ):
        line = refused(cli(*REVIEW, *more))
        assert f"expected the sample of {asked}, got another (" in line and "name another with --csv" in line
    # With neither, the file says what the sample is.
    assert cli(*REVIEW).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sample", "0"), "--sample: expected a whole number of answers, 1 to 100,000, got"),
        (("--sample", "x"), "--sample: expected a whole number of answers"),
        (("--seed", "-1"), "--seed: expected a seed: a whole number from 0 to 1000000000, got"),
        (("--seed", "1.5"), "--seed: expected a seed"),
        (("--csv", ""), "--csv: expected a file, got"),
        (("more",), "'more' is one word too many"),
    ],
)
def test_options_that_are_none_are_refused(
    cli: CommandLine, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(cli(*REVIEW, *arguments))


# The proof


def test_verify_proves_the_labels_too(cli: CommandLine, folder: Path) -> None:
    assert cli("review", "run", "--csv", "l.csv", "--sample", "9").code == 0
    fill_in(Path("l.csv"), as_a_person_reads)
    assert cli("review", "run", "--csv", "l.csv").code == 0
    path = folder / "labels.jsonl"
    whole = path.read_bytes()

    def wrong() -> list[str]:
        return [each for each in json.loads(cli("verify", "run", "--json").out)["wrong"] if "labels.jsonl" in each]

    assert len(lines_of(path)) == 9 and wrong() == []
    path.write_bytes(whole.replace(b'"label":"', b'"label":"C', 1))
    assert wrong() == ["labels.jsonl line 1: damaged: its checksum is missing or wrong"]
    stranger = json.loads(whole.splitlines()[0])
    del stranger["crc"]
    rows = [{**stranger, "label": "C"}, {**stranger, "id": "none/1/baseline/0"}, {"id": "x"}]
    path.write_bytes(whole + b"".join(sealed(json.dumps(row).encode()) for row in rows))
    none, unknown, gone = wrong()
    assert unknown == "labels.jsonl line 10: 'C' is none of the labels of its answer"
    assert gone.startswith("labels.jsonl line 11: the records hold no answer none/1/baseline/0 of sim/")
    assert none.startswith("labels.jsonl line 12: no label: ")
    path.write_bytes(whole)
    records = folder / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b"position <<A>>", b"position <<B>>", 1))
    told = json.loads(cli("verify", "run", "--json").out)
    assert any(each.startswith("labels.jsonl: not compared with the records: ") for each in told["unproven"])
