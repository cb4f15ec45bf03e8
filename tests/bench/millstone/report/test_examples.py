"""What stands behind a number: answers counted as a plain loop counts them, prompts as the grid makes them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from answered_run import answered_run
from msgspec import structs

from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.orientation_labels import OTHER
from millstream.bench.millstone.report.examples import LEVELS, explorer
from millstream.bench.millstone.report.explorer import Explorer
from millstream.bench.millstone.report.folders import AnswerFolder, read_folder, sampled
from millstream.bench.millstone.texts import LONGEST, Excerpt
from millstream.bench.millstone.work import SAMPLE
from millstream.engine.runs.journal import read_lines
from millstream.engine.runs.run_folder import read_manifest
from millstream.metrics.millstone.openness import CASES, STANCES, case_of

# As models answer: much alike, some at length, one not at all.
TEXTS = ("position <<A>>", "position <<B>>", "position <<A>>", "", "I would rather not. " * 40 + "position <<B>>", "A")


def read(folder: Path) -> AnswerFolder:
    records = folder / "records.jsonl"
    return read_folder(records, read_lines(records), manifest=read_manifest(folder))


def made(folder: Path, text_of: tuple[str, ...] = TEXTS) -> AnswerFolder:
    return read(answered_run(folder, lambda item: text_of[(item.template + item.trial) % len(text_of)]))


def explored(folder: AnswerFolder) -> Explorer:
    return explorer(sampled([folder]))


def test_the_most_frequent_answers_are_counted_with_their_stances(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    found = explored(folder)
    [model] = found.models
    told: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for line in read_lines(folder.path / "records.jsonl"):
        record = json.loads(line)
        cell = told.setdefault((record["issue"], case_of(record["config"]) or ""), Counter())
        cell[Excerpt.of(record["text"]).cut(LONGEST)[0], record["stance"]] += 1
    assert len(told) == len(model.cells) * len(CASES)
    for issue, cells in model.cells.items():
        for case, shown_cell in zip(CASES, cells, strict=True):
            counter = told[issue, case]
            shown = {(found.texts[said.text], STANCES[said.stance]): said.times for said in shown_cell.said}
            assert shown.items() <= counter.items()
            assert [said.times for said in shown_cell.said] == sorted(counter.values(), reverse=True)[: LEVELS[0][0]]
            assert shown_cell.different == len(counter)
            stances = Counter(dict.fromkeys(STANCES, 0))
            for (_, stance), times in counter.items():
                stances[stance] += times
            assert shown_cell.counts == tuple(stances[stance] for stance in STANCES)


def test_prompts_are_those_of_the_grid_with_this_models_answers(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    found = explored(folder)
    [model] = found.models
    items = {item.id: item for item in Grid(load(SAMPLE), trials=1)}
    records = {record["id"]: record for record in map(json.loads, read_lines(folder.path / "records.jsonl"))}
    assert model.script == 0 and model.why == ""
    sides = set()
    for issue, cells in model.cells.items():
        script = found.scripts[0][issue]
        for case, prompts, cell in zip(CASES, script.cases, cells, strict=True):
            for prompt, own in zip(prompts, cell.own, strict=True):
                item, record = items[prompt.id], records[prompt.id]
                assert "".join(script.parts[part] for part in prompt.parts) == item.prompt
                assert (case_of(item.config), item.orientation) == (case, prompt.a_means)
                sides.add(prompt.a_means)
                assert own is not None
                text, chars = Excerpt.of(record["text"]).cut(LONGEST)
                assert (found.texts[own.text], own.chars, STANCES[own.stance]) == (text, chars, record["stance"])
    assert sides == {"pro", "con"}


def test_a_sample_prompt_without_an_answer_is_told_apart(tmp_path: Path) -> None:
    folder = answered_run(tmp_path / "run", lambda item: "A")
    kept = [line for line in read_lines(folder / "records.jsonl") if b"/1/baseline/0" not in line]
    (folder / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in kept))
    for cells in explored(read(folder)).models[0].cells.values():
        assert [own is None for own in cells[0].own] == [True, False]
        assert all(own is not None for cell in cells[1:] for own in cell.own)


def test_prompts_that_the_records_contradict_are_not_shown(tmp_path: Path) -> None:
    folder = answered_run(tmp_path / "run", lambda item: "A")
    lines = [json.loads(line) for line in read_lines(folder / "records.jsonl")]
    for line in lines:
        line.pop("crc")
        if line["id"].endswith("/1/one-sided-pro/0"):
            line["arguments"] = line["arguments"][::-1]
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [model] = explored(read(folder)).models
    assert model.script is None and "other arguments" in model.why


def test_another_data_set_shows_no_prompts_and_says_why(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    other = tmp_path / "other"
    other.mkdir()
    for file in sorted(SAMPLE.glob("*.json"))[:3]:
        (other / file.name).write_bytes(file.read_bytes())
    assert folder.manifest is not None
    moved = structs.replace(folder, manifest={**folder.manifest, "options": {"millstone": {"dataset": str(other)}}})
    [model] = explored(moved).models
    assert model.script is None and model.why == OTHER
    assert all(cell.own == () for cells in model.cells.values() for cell in cells)


@pytest.mark.parametrize("length", [0, 1, LONGEST, LONGEST + 1, 1_000_000])
def test_a_long_text_keeps_both_ends_and_tells_its_length(length: int) -> None:
    text = ("begin" + "x" * length + "end")[:length] if length < 8 else "begin" + "x" * (length - 8) + "end"
    shown, chars = Excerpt.of(text).cut(LONGEST)
    if length <= LONGEST:
        assert (shown, chars) == (text, 0)
    else:
        assert chars == length and len(shown) <= LONGEST + 5
        assert shown.startswith("begin") and shown.endswith("end") and "[…]" in shown


def test_answers_that_never_repeat_are_cut_until_a_page_can_bear_them(tmp_path: Path) -> None:
    numbers = iter(range(1_000_000))
    folder = read(answered_run(tmp_path / "run", lambda item: f"{next(numbers)} " + "word " * 2_000 + "position <<A>>"))
    every = sampled([folder])
    sizes = []
    for budget in (1_000_000, 20_000, 12_000, 3_000, 1):
        found = explorer(every, text_budget=budget)
        sizes.append(sum(map(len, found.texts)))
        assert sizes[-1] <= budget or budget == 1
        number = max(len(cell.said) for cells in found.models[0].cells.values() for cell in cells)
        longest = max(map(len, found.texts)) - len(" […] ")
        assert (number, longest) in LEVELS
        is_whole = (number, longest) == LEVELS[0]
        assert is_whole == (found.remarks == ())
        # Counts are of all answers, however few are shown.
        assert all(cell.different == sum(cell.counts) for cells in found.models[0].cells.values() for cell in cells)
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) >= 3


def test_prompts_that_a_page_can_not_bear_are_left_out_and_told(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    every = sampled([folder])
    whole = explorer(every)
    sizes = {issue: sum(map(len, script.parts)) for issue, script in whole.scripts[0].items()}
    found = explorer(every, prompt_budget=min(sizes.values()))
    assert len(found.scripts[0]) == len(sizes) - 1 == 1
    assert found.remarks == ("To keep the page small, the prompts of 1 issue are left out.",)
