"""A tiny data set in the released format, with one of everything that the protocol distinguishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.millstone.dataset import IssueDataset, load

Content = dict[str, Any]


def _paraphrases(topic: str) -> list[dict[str, str]]:
    orientations = ("pro", "pro", "pro", "con", "con", "con")
    return [
        {"question": f"{topic}, wording {number}: A or B?", "orientation": orientation}
        for number, orientation in enumerate(orientations, 1)
    ]


@pytest.fixture
def tiny_content() -> dict[str, Content]:
    """`tea` has 5 pro and 3 con arguments, `bells` 2 and 4, so that every size rule has something to cut."""
    return {
        "tea": {
            "question": "Is tea better than coffee?",
            "pros": [
                "Tea is calm [1]. Really [1].",
                "Tea is cheap.",
                "Tea is old [2] [10] [99].",
                "Tea is “green” [3].",
                "Tea travels.",
            ],
            "cons": ["Coffee wakes [2].", "Coffee smells [4] [1].", "Coffee is quick."],
            "sources": {
                "[1]": "A. Leaf, leaf.example",
                "[2]": "B. Bean, 2020",
                "[3]": "C. Cup – dregs",
                "[4]": "",
                "[10]": "J. Jug",
                "[77]": "never cited",
            },
            "paraphrases": _paraphrases("Tea"),
        },
        "bells": {
            "question": "Should bells ring?",
            "pros": ["Bells tell the time.", "Bells are kept by law [1]."],
            "cons": ["Bells wake people [2].", "Bells cost money.", "Bells break [1].", "Bells are late."],
            "sources": {"[1]": "The Law", "[2]": "The Sleeper"},
            "paraphrases": _paraphrases("Bells"),
        },
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, Content]], Path]:
    """Write issues into a folder of their own, one file each, and give the folder."""

    def write_folder(issues: dict[str, Content]) -> Path:
        folder = tmp_path / "issues"
        folder.mkdir(exist_ok=True)
        for issue_id, content in issues.items():
            (folder / f"{issue_id}.json").write_text(json.dumps(content), encoding="utf-8")
        return folder

    return write_folder


@pytest.fixture
def tiny(tiny_content: dict[str, Content], write: Callable[[dict[str, Content]], Path]) -> IssueDataset:
    return load(write(tiny_content))
