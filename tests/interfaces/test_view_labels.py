"""Labels given through the live page are those of `review`: none is lost, and nothing tells what was labelled."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command_line import lines_of, run_command
from viewed_runs import View, viewing

pytestmark = pytest.mark.needs_benchmark("millstone")
ANSWERS = 22


def label(view: View, rater: str, name: str | None = "", **place: Any) -> tuple[int, Any]:
    """Label the next answer with its first choice, or the one at a place with this name."""
    question = view.get("/question", run="run", rater=rater, **place)
    name = question["choices"][0][1] if name == "" else name
    body = {"run": "run", "rater": rater, "at": question["at"], "mark": question["mark"], "label": name}
    status, data, _ = view.ask("/label", body)
    return status, json.loads(data)


def test_labels_count_in_review_and_can_be_taken_back(finished_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = finished_run()
    with viewing(tmp_path, ".") as view:
        for count in (1, 2, 3):
            assert label(view, "ann") == (200, {"labelled": count, "of": ANSWERS})
        assert view.get("/question", run="run", rater="ann")["at"] == 3
        assert label(view, "ann", None, at=1) == (200, {"labelled": 2, "of": ANSWERS})
        assert view.get("/question", run="run", rater="ann", after=0)["at"] == 1
    assert [line["rater"] for line in lines_of(folder / "labels.jsonl")] == ["ann"] * 4
    found = json.loads(run_command(tmp_path, "review", "run", "--json", "--rater", "ann").out)
    assert json.dumps(found).count('"ann"') and found["labelled"] == 2


def test_a_question_tells_neither_model_nor_reading(finished_run: Callable[..., Path], tmp_path: Path) -> None:
    finished_run()
    with viewing(tmp_path, ".") as view:
        label(view, "ann")
        for at in range(ANSWERS):
            question = view.get("/question", run="run", rater="bob", at=at)
            assert set(question) == {
                *("of", "labelled", "at", "mark", "about", "history", "question", "text", "ask", "choices"),
                *("certainties", "label"),
            }
            assert "sim/open" not in json.dumps({**question, "text": ""}) and question["label"] is None


def test_two_people_and_two_servers_at_once_lose_no_label(finished_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = finished_run()
    with viewing(tmp_path, ".") as one, viewing(tmp_path, ".") as other, ThreadPoolExecutor(4) as pool:

        def all_of(view: View, rater: str) -> list[int]:
            return [label(view, rater)[0] for _ in range(ANSWERS)]

        people = ((one, "ann"), (one, "bob"), (other, "cid"), (other, "dee"))
        assert [set(done) for done in pool.map(lambda each: all_of(*each), people)] == [{200}] * 4
        assert one.get("/question", run="run", rater="ann")["at"] is None
    lines = lines_of(folder / "labels.jsonl")
    assert len({(line["rater"], line["id"]) for line in lines}) == len(lines) == 4 * ANSWERS


def test_a_killed_server_loses_no_label_that_it_confirmed(finished_run: Callable[..., Path], tmp_path: Path) -> None:
    folder, confirmed = finished_run(), 0
    for _ in range(3):
        with pytest.raises(AssertionError), viewing(tmp_path, ".") as view:  # it does not end by itself
            for _ in range(3):
                confirmed += label(view, "ann")[0] == 200
            os.kill(view.pid, signal.SIGKILL)
        assert len(lines_of(folder / "labels.jsonl")) == confirmed
    assert confirmed == 9


def test_another_run_in_the_same_folder_has_a_sample_of_its_own(
    finished_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = finished_run()
    with viewing(tmp_path, ".") as view:
        before = view.get("/question", run="run", rater="ann", at=0)
        shutil.rmtree(folder)
        finished_run("--temperature", "0.5")
        stale = {"run": "run", "rater": "ann", "at": 0, "mark": before["mark"], "label": before["choices"][0][1]}
        assert view.ask("/label", stale)[0] == 409
        assert label(view, "ann") == (200, {"labelled": 1, "of": ANSWERS})
    # It counts for the answers that are there now.
    assert json.loads(run_command(tmp_path, "review", "run", "--json", "--rater", "ann").out)["labelled"] == 1


def test_what_is_no_label_of_that_answer_is_refused(finished_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = finished_run()
    with viewing(tmp_path, ".") as view:
        question = view.get("/question", run="run", rater="ann", at=0)
        good = {"run": "run", "rater": "ann", "at": 0, "mark": question["mark"], "label": question["choices"][0][1]}
        wrong: tuple[dict[str, Any], ...] = (
            {"at": 1},
            {"at": -1},
            {"at": "0"},
            {"at": True},
            {"mark": ""},
            {"label": "nonsense"},
            {"label": 3},
            {"certainty": 0.123},
            {"rater": ""},
            {"rater": "x" * 101},
            {"rater": "a\nb"},
        )
        for change in wrong:
            assert view.ask("/label", {**good, **change})[0] == 409, change
        assert not (folder / "labels.jsonl").exists()
        assert view.ask("/label", good)[0] == 200
