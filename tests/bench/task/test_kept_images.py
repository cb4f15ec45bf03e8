"""The images of a task's prompts are kept beside its records, under the descriptions that these have."""

from __future__ import annotations

from pathlib import Path

import millstream as ms
from millstream.bench.evaluation.door.item_reader import ItemReader
from millstream.bench.evaluation.door.kept_images import IMAGES, KeptImage, keep_images
from millstream.bench.evaluation.page.items import RunItems
from millstream.bench.task.asking import TaskItems
from millstream.bench.task.questions import questions_of
from millstream.bench.task.records import Record

SQUARE, ROUND = (f"data:image/png;base64,{sign * 40}" for sign in "ab")


def items() -> TaskItems:
    def prompt(row: dict[str, str]) -> list[ms.Message]:
        return [ms.user(("Which shape?", ms.Image(row["image"]), ms.Image("https://nowhere.invalid/x.png")))]

    rows = [{"id": str(at), "image": image} for at, image in enumerate((SQUARE, ROUND, SQUARE))]
    task = ms.Task(data=rows, prompt=prompt, score=ms.match("square"))
    return TaskItems(task, questions_of(task, Path()))


def test_a_run_keeps_each_image_once_under_its_description_in_the_records(tmp_path: Path) -> None:
    made = items()
    made.keep_in(tmp_path)
    kept = RunItems(tmp_path, ItemReader(Record)).images
    described = [part["image"] for each in made.questions for part in each.prompt_json()[0]["content"][1:2]]  # type: ignore[index]
    assert [kept[text] for text in described] == [SQUARE, ROUND, SQUARE] and len(kept) == 2


def test_an_image_that_is_too_large_and_a_second_file_are_not_written(tmp_path: Path) -> None:
    keep_images(tmp_path, [KeptImage("large", "x" * (3 << 20))])
    assert not (tmp_path / IMAGES).exists()
    keep_images(tmp_path, [KeptImage("small", SQUARE)])
    keep_images(tmp_path, [KeptImage("other", ROUND)])
    assert RunItems(tmp_path, ItemReader(Record)).images == {"small": SQUARE}


def test_a_damaged_file_of_images_leaves_their_descriptions(tmp_path: Path) -> None:
    (tmp_path / IMAGES).write_text("no JSON\n")
    assert RunItems(tmp_path, ItemReader(Record)).images == {}
