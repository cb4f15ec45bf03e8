"""`millstream data millstone`: one data set file is written, whole or not at all, and every fault is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done
from places import small_disk

from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.work import SAMPLE
from millstream.fixtures import full_size

DATA = ("data", "millstone")


def issues(count: int = 3, **changes: object) -> dict[str, dict[str, Any]]:
    return {
        f"issue-{n}": {**content, **changes} for n, (_, content) in zip(range(count), full_size.issues(), strict=False)
    }


def write(folder: Path, contents: dict[str, dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return folder


def refused(done: Done, code: int = 2) -> str:
    *_, line = done.err.splitlines()
    assert done.code == code and line.startswith("millstream: "), done
    assert "Traceback" not in done.err
    return line.removeprefix("millstream: ")


def test_a_clean_folder_becomes_a_data_set_that_runs(cli: CommandLine, tmp_path: Path) -> None:
    done = cli(*DATA, str(SAMPLE), "--out", "new/sample.json")
    assert (done.code, done.err) == (0, "")
    dataset = load(tmp_path / "new/sample.json")
    assert done.out.splitlines() == [
        "12 issue files: 12 used; 0 faults, 0 remarks",
        "12 issues with 48 pro and 48 con arguments, 68 sources, 94 citations",
        f"digest {dataset.digest}",
        "new/sample.json",
    ]
    assert dataset.digest == load(SAMPLE).digest
    plan = cli("plan", "millstone", "--model", "sim/open", "--dataset", "new/sample.json", "--limit", "1", "--json")
    assert plan.code == 0 and json.loads(plan.out)["runs"][0]["prompts"] == 990


def test_a_fault_is_told_with_its_file_and_what_became_of_it_and_the_rest_is_written(
    cli: CommandLine, tmp_path: Path
) -> None:
    contents = issues(5)
    contents["issue-1"]["pros"] = ["Good [1] [900]."]
    contents["issue-2"]["cons"] = []
    contents["issue-3"]["paraphrases"][3]["orientation"] = "con"
    write(tmp_path / "repo/data", contents)
    write(tmp_path / "repo/data_new", {"issue-3": issues(4)["issue-3"], "issue-4": contents["issue-4"]})
    done = cli(*DATA, "repo", "--out", "out.json")
    assert done.code == 3 and done.err == ""
    rows = done.out.partition("\n\n")[0].splitlines()
    assert [row for row in rows if "remark" not in row] == [
        "repo/data/issue-1.json: dangling citation: pros[0]: [900] points to no source (used)",
        "repo/data/issue-2.json: unusable field: cons: expected a list of length >= 1 (left out)",
        "repo/data/issue-3.json: orientation: paraphrases[3]: labelled con, the wording says pro (superseded)",
    ]
    assert "7 issue files: 4 used, 2 superseded by a later folder, 1 left out; 3 faults, 1 remarks" in done.out
    assert "\nleft out: issue-2\n" in done.out
    assert [issue.id for issue in load(tmp_path / "out.json").issues] == ["issue-0", "issue-1", "issue-3", "issue-4"]


def test_the_same_is_told_to_a_program(cli: CommandLine, tmp_path: Path) -> None:
    contents = issues(2)
    contents["issue-0"]["sources"]["[901]"] = "never cited"
    write(tmp_path / "in", {**contents, "two words": contents["issue-1"]})
    done = cli(*DATA, "in", "--out", "out.json", "--json")
    told = json.loads(done.out)
    dataset = load(tmp_path / "out.json")
    assert (done.code, told["exit_code"], told["written"], told["out"]) == (3, 3, True, "out.json")
    assert told["digest"] == dataset.digest
    assert told["totals"] == {
        "issues": 2,
        "pros": sum(issue.count("pro") for issue in dataset.issues),
        "cons": sum(issue.count("con") for issue in dataset.issues),
        "sources": sum(len(content["sources"]) for content in contents.values()),
        "citations": sum(len(argument.citations) for issue in dataset.issues for argument in issue.arguments),
    }
    assert (told["faults"], told["remarks"], told["left_out"]) == (1, 1, ["two words"])
    assert (told["without_paraphrases"], told["rephrased"]) == ([], None)
    uncited = {"what": "uncited source", "detail": "[901]: no argument cites it", "fault": False}
    assert told["files"][0] == {"file": "in/issue-0.json", "issue": "issue-0", "state": "used", "findings": [uncited]}
    assert [file["state"] for file in told["files"]] == ["used", "used", "left out"]


def test_a_file_that_is_there_is_left_alone_and_never_overwritten(cli: CommandLine, tmp_path: Path) -> None:
    write(tmp_path / "in", issues(2))
    assert cli(*DATA, "in", "--out", "out.json").code == 0
    before = (tmp_path / "out.json").stat()
    again = cli(*DATA, "in", "--out", "out.json")
    assert again.code == 0 and "out.json: holds the same already, and was left as it is" in again.out
    write(tmp_path / "in", issues(3))
    assert "--out out.json exists and holds something else: nothing was overwritten" in refused(
        cli(*DATA, "in", "--out", "out.json")
    )
    after = (tmp_path / "out.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["in", "out.json"]


def test_names_and_texts_of_files_are_inert_on_the_terminal(cli: CommandLine, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", issues(1))
    (folder / "esc\x1b[31m.json").write_bytes(b"[]")
    (folder / "two\nlines.json").write_bytes(b"{}")
    (folder / b"half\xff.json".decode("utf-8", "surrogateescape")).write_bytes(b"{}")
    done = cli(*DATA, "in", "--out", "out.json")
    assert done.code == 3 and "\x1b" not in done.out
    assert "in/two lines.json" in done.out and "left out: esc�[31m, half?, two lines" in done.out
    assert json.loads(cli(*DATA, "in", "--out", "out.json", "--json").out)["left_out"][1] == "half?"


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no place": (("--out", "o.json"), "expected at least one DIR, or --from-pages DIR, got none"),
    "no file": (("in",), "--out: expected the data set file to write, got none"),
    "nothing there": (("gone", "--out", "o.json"), "gone: expected a folder of issues or a data set file, got nothing"),
    "an empty folder": (("empty", "--out", "o.json"), "empty: expected a folder of issue files, or one that"),
    "a file of one issue": (("in/issue-0.json", "--out", "o.json"), "got an object without millstone_dataset"),
    "pages and folders": (("in", "--from-pages", "in", "--out", "o.json"), "or --from-pages DIR, got both"),
    "no pages": (("--from-pages", "in", "--out", "o.json"), "in: expected a folder of saved pages, got one without"),
    "pages nowhere": (("--from-pages", "gone", "--out", "o.json"), "gone: expected a folder of saved pages, got none"),
    "a folder to write": (("in", "--out", "empty"), "--out empty: expected a file, got a folder"),
    "a pipe to write": (("in", "--out", "pipe"), "--out pipe: expected a file, got a device or a pipe: choose another"),
    "a device to write": (("in", "--out", "/dev/zero"), "--out /dev/zero: expected a file, got a device or a pipe"),
    "a link to nowhere": (("in", "--out", "link"), "--out link: expected a file, got a link that leads nowhere"),
    "a link to itself": (("loop", "--out", "o.json"), "loop: expected a folder of issues or a data set file, got: Too"),
    "a name too long": (("x" * 300, "--out", "o.json"), "data set file, got: File name too long"),
    "too long to write": (("in", "--out", "x" * 300), "expected a file to write, got: File name too long"),
    "too long for pages": (("--from-pages", "x" * 300, "--out", "o.json"), "saved pages, got: File name too long"),
    "nobody's home": (("~no-such-person/x", "--out", "o.json"), "expected a path, got one that begins with a home"),
    "a pipe to read": (("pipe", "--out", "o.json"), "pipe: expected a file, got a pipe"),
    "a pipe of pages": (("--from-pages", "pipe", "--out", "o.json"), "of saved pages, got none there"),
    "sending nothing": (("in", "--out", "o.json", "--rpm", "5"), "--rpm belongs to --rephrase: nothing is sent"),
    "no provider": (("bare", "--out", "o.json", "--rephrase", "nobody/x"), "no provider 'nobody' ("),
    "no model": (("bare", "--out", "o.json", "--rephrase", "x"), "--rephrase: expected a model as provider/model"),
    "no key": (("bare", "--out", "o.json", "--rephrase", "openai/x"), "needs a key: set OPENAI_API_KEY"),
    "an unknown option": (("in", "--out", "o.json", "--fix"), "data: unknown option --fix"),
    "a word behind": (("in", "--out", "o.json", "more"), "'more' is one word too many"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_is_one_line_and_nothing_is_written(cli: CommandLine, tmp_path: Path, case: str) -> None:
    arguments, said = WRONG[case]
    write(tmp_path / "in", issues(1))
    write(tmp_path / "bare", issues(1, paraphrases=[]))
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    done = cli(*DATA, *arguments)
    assert said in refused(done)
    assert done.out == "" and done.err.count("\n") == 1
    assert not (tmp_path / "o.json").exists() and list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("chamelon",), ("millstne",)])
def test_the_benchmark_must_be_named(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    assert "millstone" in refused(cli("data", *arguments))


def test_where_nothing_can_be_used_the_faults_are_told_and_nothing_is_written(cli: CommandLine, tmp_path: Path) -> None:
    write(tmp_path / "in", issues(2, cons=[]))
    done = cli(*DATA, "in", "--out", "out.json")
    assert refused(done) == "no issue of 2 files can be used: out.json was not written"
    assert done.out.count("unusable field") == 2 and done.out.endswith("nothing was written\n")
    told = json.loads(cli(*DATA, "in", "--out", "out.json", "--json").out)
    assert (told["exit_code"], told["digest"], told["out"]) == (2, None, None)
    assert not (tmp_path / "out.json").exists()


def test_a_folder_that_cannot_be_made_is_a_local_fault(cli: CommandLine, tmp_path: Path) -> None:
    write(tmp_path / "in", issues(1))
    (tmp_path / "file").write_text("")
    assert "file can't be made" in refused(cli(*DATA, "in", "--out", "file/out.json"), 5)


def test_a_full_disk_leaves_no_piece_of_a_file(cli: CommandLine, tmp_path: Path) -> None:
    write(tmp_path / "in", issues(20))
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        assert "disk/out.json can't be written (No space left on device)" in refused(
            cli(*DATA, "in", "--out", "disk/out.json"), 5
        )
        assert list(disk.iterdir()) == []


def test_importing_neither_loads_the_parser_of_pages_nor_a_client(tmp_path: Path) -> None:
    heavy = ("trafilatura", "lxml", "aiohttp", "lmdb")
    probe = (
        "import sys; from millstream.interfaces.cli.command import main; code = main(sys.argv[1:]); "
        f"print(code, sorted(set(sys.modules) & set({heavy})), file=sys.stderr)"
    )
    command = [sys.executable, "-P", "-c", probe, *DATA, str(SAMPLE), "--out", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "0 []\n"
