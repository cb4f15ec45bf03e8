"""Run folders become one survey: models named apart, what each was to be asked, what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from answered_run import ANSWERS, answered_run

from millstream.bench.millstone.options import Readings
from millstream.bench.millstone.proof import listed_grid
from millstream.bench.millstone.reference import CONTROVERSIAL, LEFT_OUT
from millstream.bench.millstone.report import folders
from millstream.bench.millstone.report.folders import AnswerFolder, names, standings, survey
from millstream.engine.runs.journal import read_lines
from millstream.engine.runs.run_folder import read_manifest
from millstream.report.labels import folder_labels


def read(folder: Path, *, has_manifest: bool = True) -> AnswerFolder:
    return folders.read(folder, read_manifest(folder) if has_manifest else None, Readings())


def run(folder: Path, *models: str) -> Path:
    return answered_run(folder, lambda item: "position <<A>>", models or ("sim/open",))


def fail(folder: Path, keep: int, kinds: tuple[str, ...]) -> None:
    """All but the first so many answers become failures, of each kind one, or are pending."""
    lines = [json.loads(line) for line in read_lines(folder / "records.jsonl")]
    failures: list[dict[str, Any]] = []
    for line, kind in zip(lines[keep:], kinds, strict=False):
        line.pop("crc")
        failures.append({**line, "status": kind, "stance": None, "letter": None, "text": None, "error": "no"})
    whole = list(read_lines(folder / "records.jsonl"))[:keep]
    (folder / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in whole))
    (folder / "failures.jsonl").write_text("".join(json.dumps(line) + "\n" for line in failures))


def test_models_of_several_folders_stand_side_by_side(tmp_path: Path) -> None:
    folders = [read(run(tmp_path / "one", "sim/open", "sim/shy")), read(run(tmp_path / "two", "sim/contrary"))]
    found = survey(folders, Readings())
    assert [answers.name for answers in found.answers] == ["sim/open", "sim/shy", "sim/contrary"]
    assert [len(answers) for answers in found.answers] == [ANSWERS] * 3
    assert {len(shape) for shape in found.shapes.values()} == {ANSWERS}
    manners = {tuple(manner.items()) for manner in found.manners.values()}
    assert len(manners) == 1 and ("data set", folders[0].manifest["specification"]["data"][:12]) in manners.pop()  # type: ignore[index]
    assert (found.left_out, found.controversial) == (LEFT_OUT, CONTROVERSIAL)
    assert found.topics["US-penny"]


def test_a_model_in_two_folders_is_named_apart_by_the_folder(tmp_path: Path) -> None:
    folders = [read(run(tmp_path / name, "sim/open")) for name in ("a/run", "b/run", "c/other")]
    assert list(names(folders).values()) == ["sim/open (a/run)", "sim/open (b/run)", "sim/open (c/other)"]


def test_no_two_models_have_one_name(tmp_path: Path) -> None:
    folders = [read(run(tmp_path / "a", "sim/open", "sim/open (b)")), read(run(tmp_path / "b", "sim/open"))]
    assert sorted(names(folders).values()) == ["sim/open (a)", "sim/open (b)", "sim/open (b) #2"]


def test_folders_are_told_by_as_few_names_as_it_takes() -> None:
    assert folder_labels([Path("/x/a"), Path("/y/b")]) == {Path("/x/a"): "a", Path("/y/b"): "b"}
    assert list(folder_labels([Path("/x/a"), Path("/y/a"), Path("/b")]).values()) == ["x/a", "y/a", "/b"]


def test_what_failed_and_what_is_pending_is_counted(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    fail(folder, 100, ("rejected", "rejected", "timeout"))
    [found] = standings([read(folder)])
    assert (found.expected, found.answered, found.pending) == (ANSWERS, 100, ANSWERS - 103)
    assert found.failed == {"rejected": 2, "timeout": 1} and found.is_told and not found.is_complete


def test_a_model_without_any_answer_is_not_forgotten(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "sim/open", "sim/shy")
    fail(folder, ANSWERS, ("timeout",))
    first, second = standings([read(folder)])
    assert (first.model, first.is_complete) == ("sim/open", True)
    assert (second.model, second.expected, second.answered, second.failures) == ("sim/shy", ANSWERS, 0, 1)
    found = survey([read(folder)], Readings())
    assert [answers.name for answers in found.answers] == ["sim/open"]
    assert set(found.shapes) == {"sim/open", "sim/shy"}


def test_records_without_a_manifest_suggest_what_was_asked(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    [whole] = standings([read(folder, has_manifest=False)])
    assert (whole.expected, whole.answered, whole.is_told, whole.is_complete) == (ANSWERS, ANSWERS, False, True)
    fail(folder, 120, ())
    [part] = standings([read(folder, has_manifest=False)])
    assert (part.expected, part.answered, part.pending) == (ANSWERS, 120, ANSWERS - 120)


def test_prompts_of_another_version_are_not_compared(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    assert not listed_grid(read_manifest(folder)).unproven
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["specification"]["prompt_version"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "the run's prompts can't be built here" in listed_grid(read_manifest(folder)).unproven[0]
