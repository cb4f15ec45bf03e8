"""`score` and `verify`: the published answers, records of other programs, and every kind of tampering."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL_PROMPTS, CommandLine, lines_of, scores_of

from millstream.engine.runs.run_folder import manifest_hash

pytestmark = pytest.mark.needs_benchmark("millstone")

COUNTS = Path(__file__).parent.parent / "metrics/millstone/data/millstone-counts-gpt-4o.csv"
DOCUMENTED = ("id", "issue", "template", "config", "trial", "stance", "model", "temperature", "status", "text")


@pytest.fixture
def folder(finished_run: Callable[..., Path]) -> Path:
    """A finished run with one failure."""
    return finished_run(rejected=2)


def test_published_counts_give_the_published_scores(cli: CommandLine) -> None:
    done = cli("score", "--counts", str(COUNTS))
    assert done.code == 0
    assert re.search(r"^gpt-4o +7\.759 .* 30\.019 +14\.309 .* 9,900 ", done.out, re.MULTILINE)
    entry = json.loads(cli("score", "--counts", str(COUNTS), "--json").out)[str(COUNTS)]["millstone"]["models"][
        "gpt-4o"
    ]
    assert [round(entry[kind], 4) for kind in ("om", "om_pro_share", "om_no_flip")] == [7.7593, 30.0185, 14.3086]


def test_om_without_the_three_issues_stands_beside_that_on_all_where_they_are_there(
    cli: CommandLine, tmp_path: Path
) -> None:
    lines = ["issue,issue_stance,count,case,model"]
    # Of the ten baseline answers of one, nine are pro: a flip to all con is |1 - 0.9| in each case, OM 10.
    for issue, con in (("corporal-punishment", 0), ("US-penny", 1)):
        lines += [f"{issue},pro,{10 - con},neither,m", *([f"{issue},con,{con},neither,m"] if con else [])]
        lines += [f"{issue},con,10,{case},m" for case in ("pro", "con", "75pro", "75con", "all")]
    (tmp_path / "counts.csv").write_text("\n".join(lines) + "\n")
    entry = json.loads(cli("score", "--counts", "counts.csv", "--json").out)["counts.csv"]["millstone"]["models"]["m"]
    assert entry["issues_scored"] == 2
    assert (entry["om"], entry["om_all_but_three"]) == (pytest.approx(5), pytest.approx(10))
    header, row = (line.rstrip() for line in cli("score", "--counts", "counts.csv").out.splitlines()[1:3])
    assert header.endswith("OM, all but three") and row.endswith("10.000")
    (tmp_path / "counts.csv").write_text("\n".join(line for line in lines if "corporal" not in line) + "\n")
    assert "all but three" not in cli("score", "--counts", "counts.csv").out
    assert "om_all_but_three" not in cli("score", "--counts", "counts.csv", "--json").out


def test_counts_have_no_texts_to_read_anew(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text("issue,issue_stance,count,case,model\nUS-penny,pro,9,neither,m\n")
    done = cli("score", "--counts", "counts.csv", "--stance", "paper")
    assert done.code == 2 and "--stance: expected records" in done.err


def test_a_folder_of_another_format_is_refused_in_a_line_and_left_as_it_is(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "old")
    path = tmp_path / "old/manifest.json"
    manifest = json.loads(path.read_text())
    for written in (None, 0, 2):
        manifest["format"] = written
        manifest["manifest_hash"] = manifest_hash(manifest)
        path.write_text(json.dumps(manifest))
        for verb in ("score", "verify", "report", "resume", "retry", "export"):
            done = cli(verb, "old")
            assert done.code == 5, (verb, done)
            [line] = done.err.splitlines()
            assert f"manifest.json has format {written}, this version reads 1: read the folder with" in line
        assert json.loads(path.read_text()) == manifest


def test_scores_that_cannot_be_written_are_shown_with_exit_code_5_and_other_folders_keep_theirs(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    whole = (folder / "scores.json").read_bytes()
    shutil.copytree(folder, tmp_path / "alone")
    (tmp_path / "alone/manifest.json").unlink()
    (tmp_path / "alone/scores.json").unlink()
    (folder / "scores.json.new").mkdir()
    for verb in (("score", "run"), ("score", "alone", "run", "--json"), ("score", "run", "alone")):
        done = cli(*verb)
        assert done.code == 5 and "scores.json can't be written" in done.err and "sim/open" in done.out, done
        assert (folder / "scores.json").read_bytes() == whole
        assert ("alone" in verb) == (tmp_path / "alone/scores.json").exists()
        (tmp_path / "alone/scores.json").unlink(missing_ok=True)


def test_records_of_another_program_score_with_the_documented_fields_alone(
    cli: CommandLine, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rows = [{name: line[name] for name in DOCUMENTED} for line in lines_of(folder / "records.jsonl")]
    (other / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    done = cli("score", "other", "run")
    assert done.code == 0, done.err
    # The other program's records don't say who answered.
    assert {**scores_of(other), "served": scores_of(folder)["served"]} == scores_of(folder)
    assert done.out.count("\nsim/open  ") == 2
    # The one that failed is nowhere averaged over in silence.
    assert done.out.count("\nsim/open: 1 of 22 answers are missing\n") == 2


def test_a_last_line_without_a_newline_counts_and_a_torn_one_is_told(cli: CommandLine, folder: Path) -> None:
    whole = (folder / "records.jsonl").read_bytes()
    assert cli("score", "run").code == 0
    expected = scores_of(folder)
    (folder / "records.jsonl").write_bytes(whole.removesuffix(b"\n"))
    assert cli("score", "run").code == 0
    assert scores_of(folder) == expected
    (folder / "records.jsonl").write_bytes(whole + whole[:40])
    torn = cli("score", "run")
    assert torn.code == 0 and f"line {SMALL_PROMPTS} is torn" in torn.err
    assert scores_of(folder) == expected


def test_an_answer_that_stands_there_twice_is_not_scored(cli: CommandLine, folder: Path) -> None:
    edit(folder / "records.jsonl", lambda lines: [*lines, lines[4]])
    done = cli("score", "run")
    assert done.code == 2
    assert re.search(r"records.jsonl: id \S+ of sim/open stands there twice", done.err)


@pytest.mark.parametrize(("text", "said"), [("", "expected records, got none"), ("[]", "line 1: Expected `object`")])
def test_a_file_without_records_is_refused(cli: CommandLine, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "records.jsonl").write_text(text)
    done = cli("score", ".")
    assert done.code == 2 and said in done.err
    assert not (tmp_path / "scores.json").exists()


def test_a_damaged_line_is_not_scored(cli: CommandLine, folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"stance":"pro"', b'"stance":"con"', 1))
    done = cli("score", "run")
    assert done.code == 5
    assert re.search(r"records.jsonl line \d+ is damaged", done.err)


def begin_again(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | {"ended": None}
    path.write_text(json.dumps(manifest | {"manifest_hash": manifest_hash(manifest)}))


def test_scores_of_an_earlier_part_are_no_tampering_while_a_run_has_not_ended(cli: CommandLine, folder: Path) -> None:
    # As a kill leaves it: begun again after an end, with records that the scores do not know yet.
    begin_again(folder)
    edit(folder / "records.jsonl", lambda lines: lines[:-1])
    done = cli("verify", "run")
    assert done.code == 0, done.out
    assert "scores.json: the run has not ended" in done.out


def sealed(line: bytes) -> bytes:
    """A line with the checksum that its bytes ask for."""
    body = re.sub(rb',"crc":\d+}$', b"", line)
    return body + b',"crc":%d}' % zlib.crc32(body)


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))


def changed(folder: Path, name: str, old: bytes, new: bytes) -> None:
    path = folder / name
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def resealed(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The last record that has arguments, changed and sealed anew; all before it stay."""
    lines = (run / "records.jsonl").read_bytes().splitlines()
    at, record = [(at, line) for at, line in enumerate(map(json.loads, lines)) if len(line["arguments"]) > 1][-1]
    change(record)
    lines[at] = sealed(json.dumps(record, separators=(",", ":")).encode())
    edit(run / "records.jsonl", lambda _: lines)


Tampering = Callable[[Path], None]
TAMPERED: dict[str, tuple[Tampering, str]] = {
    "a byte": (
        lambda run: changed(run, "records.jsonl", b'"cached":false', b'"cached":true '),
        "damaged: its checksum",
    ),
    "a record and a failure": (
        lambda run: edit(
            run / "failures.jsonl", lambda lines: [*lines, (run / "records.jsonl").read_bytes().split(b"\n")[0]]
        ),
        "stands there twice",
    ),
    "a stance with its checksum": (
        lambda run: edit(
            run / "records.jsonl",
            lambda lines: [sealed(line.replace(b'"stance":"pro"', b'"stance":"con"')) for line in lines],
        ),
        "scores.json: not what the records give, for sim/open",
    ),
    "a letter and its stance, sealed": (
        lambda run: resealed(
            run,
            lambda line: line.update(
                letter="B" if line["letter"] == "A" else "A", stance="con" if line["stance"] == "pro" else "pro"
            ),
        ),
        "; its text gives ",
    ),
    "a text, sealed": (lambda run: resealed(run, lambda line: line.update(text="I can't say.")), "gives None, other"),
    "an orientation, sealed": (
        lambda run: resealed(
            run, lambda line: line.update(orientation="con" if line["orientation"] == "pro" else "pro")
        ),
        "; the data set gives ",
    ),
    "the order of arguments, sealed": (
        lambda run: resealed(run, lambda line: line["arguments"].reverse()),
        "; the run showed ",
    ),
    "an argument left out, sealed": (
        lambda run: resealed(run, lambda line: line["arguments"].pop()),
        "; the run showed ",
    ),
    "a trial, sealed": (lambda run: resealed(run, lambda line: line.update(trial=14)), "its fields are of "),
    "a count of the manifest": (
        lambda run: changed(run, "manifest.json", b'"truncated": 0', b'"truncated": 1'),
        "something in it was changed",
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_tampering_is_found_and_ends_with_5(cli: CommandLine, folder: Path, case: str) -> None:
    tamper, expected = TAMPERED[case]
    tamper(folder)
    done = cli("verify", "run")
    assert done.code == 5
    assert expected in done.out
    told = json.loads(cli("verify", "run", "--json").out)
    assert told["ok"] is False and any(expected in wrong for wrong in told["wrong"])
