"""What an import found, folded for a terminal: every word is there and no line of a table is too wide."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from command_line import COMMAND, Done, environment, run_command
from terminals import pieces, terminal

from millstream.bench.millstone.checks import Finding
from millstream.bench.millstone.importing.gathering import FileReport, FileReports
from millstream.bench.millstone.importing.import_report import ImportResult, import_text
from millstream.bench.millstone.importing.rephrase import ParaphraseRun
from millstream.fixtures import full_size

LONG = 'paraphrases[3].orientation: expected "pro" or "con", got ' + 12 * "漢字"
GATHERED = FileReports(
    (
        FileReport(
            "in/a-file-with-a-name-that-is-rather-long-for-a-narrow-terminal.json",
            "a-file",
            "left out",
            (Finding("wrong type", LONG, is_fatal=True), Finding("uncited source", "[9]: no argument cites it", False)),
        ),
        FileReport("in/clean.json", "clean", "used", ()),
        FileReport("in/b.json", "b", "superseded", (Finding("orientation", "paraphrases[0]: labelled con"),)),
    ),
    (),
)


def told() -> ImportResult:
    rephrasing = ParaphraseRun("vllm/writer", {})
    rephrasing.failures["trams"] = "5 answers and none can be used; of the last: expected a list, got none"
    return ImportResult(gathered=GATHERED, exit_code=3, out="out.json", rephrasing=rephrasing)


def test_a_finding_is_wrapped_with_its_file_with_what_and_where() -> None:
    assert import_text(told(), 40).split("\n\n")[0].splitlines()[-2:] == [
        "in/b.json: orientation: paraphrases[0]:",
        "labelled con (superseded)",
    ]
    assert import_text(told(), 40).split("\n\n")[1].splitlines() == [
        "trams: not rephrased: 5 answers and none",
        "can be used; of the last: expected a",
        "list, got none",
    ]


def on_a_terminal(home: Path, columns: int, *arguments: str) -> Done:
    """What a terminal of so many columns gets as stdout."""
    ours, theirs = terminal(columns)
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=home,
        env=environment(home, PYTHONIOENCODING="utf-8"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    got = b"".join(pieces(ours))
    _, err = process.communicate(timeout=30)
    return Done(process.returncode, got.decode().replace("\r\n", "\n"), err.decode())


def test_a_terminal_gets_wrapped_findings_and_a_pipe_one_line_a_finding(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, (_, content) in zip(range(3), full_size.issues(), strict=False):
        text = json.dumps(content).replace('"sources": {', '"sources": {"[900]": "never cited", ')
        (tmp_path / f"in/issue-{number}.json").write_text(text, "utf-8")
    command = ("data", "millstone", "in", "--out", "out.json")
    narrow = on_a_terminal(tmp_path, 40, *command)
    assert (narrow.code, narrow.err) == (0, "")
    assert narrow.out.split("\n\n")[0].splitlines() == [
        line
        for number in range(3)
        for line in (f"in/issue-{number}.json: uncited source", "(remark): [900]: no argument cites it", "(used)")
    ]
    piped = run_command(tmp_path, *command, COLUMNS="40")
    assert len(piped.out.split("\n\n")[0].splitlines()) == 3
    first = "in/issue-0.json: uncited source (remark): [900]: no argument cites it (used)"
    assert piped.out.splitlines()[0] == first
