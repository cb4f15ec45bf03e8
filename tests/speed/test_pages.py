"""Pages to texts beside bare trafilatura: what is measured, and what a wrong folder gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment

from millstream.speed.pages import Passages, f1_of

SENTENCE = "A ferry leaves the harbour every hour, and takes passengers and bicycles to the island. "


def pages(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "millstream.speed.pages", *words]
    return subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=110)


@pytest.mark.long
def test_every_way_reads_every_page_and_finds_the_passages(tmp_path: Path) -> None:
    (tmp_path / "eval").mkdir()
    article = f"<html><body><nav>Imprint</nav><article><p>{5 * SENTENCE}</p></article></body></html>"
    listed = {}
    for number in range(4):
        (tmp_path / "eval" / f"{number}.html").write_text(article)
        listed[f"https://a.test/{number}"] = {"file": f"{number}.html", "with": ["harbour"], "without": ["Imprint"]}
    (tmp_path / "evaldata.json").write_text(json.dumps(listed))
    done = pages(tmp_path, ".", "--rounds", "1")
    assert done.returncode in (0, 3), done.stderr
    assert "F1 1.000, bare 1.000" in done.stdout
    assert all(f"{name} " in done.stdout for name in ("bare trafilatura", "one worker", "two workers"))


def test_f1_counts_what_is_missing_and_what_should_not_be_there() -> None:
    passages = Passages("a.html", has=["one", "two"], lacks=["menu"])
    assert f1_of([(passages, "one two")]) == 1.0
    assert f1_of([(passages, "one menu")]) == 2 / (2 + 2)


def test_a_folder_without_evaluation_pages_is_refused(tmp_path: Path) -> None:
    done = pages(tmp_path, str(tmp_path))
    assert done.returncode == 2
    assert "has no evaldata.json: give the folder `tests` of a checkout of trafilatura" in " ".join(done.stderr.split())
