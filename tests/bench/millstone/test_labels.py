"""Labels beside their wordings: every kind of mislabelled file is found, and correcting one changes no prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from paraphrasing import AGAINST, FAVOR, six

from millstream.bench.millstone.dataset import IssueDataset, build, load, select
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.labels import (
    OrientationLabels,
    compared,
    corrected,
    labels_used,
)
from millstream.bench.millstone.options import GridOptions
from millstream.fixtures import full_size

SAMPLE = Path(__file__).parents[3] / "fixtures/data/millstone"
ALL = range(1, 7)
RIGHT = {FAVOR: "ppppcc", AGAINST: "pppccc"}
SIDES = {"p": "pro", "c": "con"}


def issue(labels: str, fourth: str = FAVOR, topic: str = "ferries") -> dict[str, Any]:
    """An issue labelled so, whose fourth template asks for A in favor (as printed) or against (as in the example)."""
    paraphrases = [
        {"question": one["question"], "orientation": SIDES[label]}
        for one, label in zip(six(topic, fourth=fourth), labels, strict=True)
    ]
    return {
        "question": f"Should {topic} be free?",
        "pros": [f"{topic} help [1].", "People pay once."],
        "cons": ["Somebody pays.", "It is crowded."],
        "sources": {"[1]": "A ledger"},
        "paraphrases": paraphrases,
    }


def data_set(**issues: Mapping[str, Any]) -> IssueDataset:
    return build("harbours", issues)


def wrong(found: OrientationLabels) -> list[int]:
    return [mismatch.template for mismatch in found.mismatches]


@pytest.mark.parametrize(
    ("labels", "fourth", "templates"),
    [
        ("ppppcc", FAVOR, []),
        ("pppccc", AGAINST, []),
        ("pppccc", FAVOR, [4]),
        ("ppppcc", AGAINST, [4]),
        ("pppppp", FAVOR, [5, 6]),
        ("pppppp", AGAINST, [4, 5, 6]),
        ("cccccc", FAVOR, [1, 2, 3, 4]),
        ("ccccpp", FAVOR, [1, 2, 3, 4, 5, 6]),
        ("pcpcpc", FAVOR, [2, 4, 5]),
    ],
)
def test_each_label_that_its_wording_contradicts_is_found(labels: str, fourth: str, templates: list[int]) -> None:
    dataset = data_set(ferries=issue(labels, fourth))
    found = compared(dataset, ALL)
    assert (wrong(found), found.unread, found.checked) == (templates, (), 6)
    right = corrected(dataset)
    assert [one.orientation for one in right.issues[0].paraphrases] == [SIDES[each] for each in RIGHT[fourth]]
    assert compared(right, ALL) == OrientationLabels(6)
    assert (right.digest == dataset.digest) == (not templates)


def test_sample_data_generated_data_and_their_corrections_raise_no_alarm() -> None:
    generated = build("full size", dict(full_size.issues()))
    for dataset in (load(SAMPLE), generated):
        assert compared(dataset, ALL) == OrientationLabels(6 * len(dataset.issues))
        assert corrected(dataset) == dataset


def test_only_the_templates_and_issues_that_are_asked_are_told() -> None:
    dataset = data_set(a=issue("pppccc"), b=issue("cppppc", topic="trams"))
    assert wrong(compared(dataset, range(1, 4))) == [1]
    assert wrong(compared(select(dataset, "a"), ALL)) == [4]


def test_a_wording_that_does_not_say_which_side_a_is_is_told_and_its_label_kept() -> None:
    content = issue("pppccc")
    content["paraphrases"][1] = {"question": "Ferries: A or B?", "orientation": "con"}
    dataset = data_set(ferries=content)
    found = compared(dataset, ALL)
    assert (wrong(found), found.unread) == ([4], (("ferries", 2),))
    assert corrected(dataset).issues[0].paraphrases[1].orientation == "con"
    assert "1 can't be checked, since their wording doesn't say which side A is: ferries/2" in found.used


def test_corrected_labels_change_no_prompt_no_rank_and_no_id() -> None:
    dataset = data_set(a=issue("pppppp"), b=issue("pppccc", topic="trams"))
    given, right = (Grid(each, GridOptions(trials=2)) for each in (dataset, corrected(dataset)))
    items = list(zip(given, right, strict=True))
    assert all((one.id, one.prompt, one.sample) == (other.id, other.prompt, other.sample) for one, other in items)
    changed = {(one.issue, one.template) for one, other in items if one.orientation != other.orientation}
    assert changed == {("a", 5), ("a", 6), ("b", 4)}
    assert given.specification()["data"] != right.specification()["data"]


def test_a_mismatch_names_file_template_label_wording_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ferries.json").write_text(json.dumps(issue("pppccc")))
    found = compared(load(tmp_path), ALL)
    assert found.lines(tmp_path) == [
        f"{tmp_path}/ferries.json: template 4 is labelled con, but its wording says pro (“A if you support the "
        "position in favor”): used as labelled; --fix-orientation reads it by its wording"
    ]
    assert found.lines(tmp_path / "all.json")[0].startswith(f"{tmp_path}/all.json: issue ferries: template 4 ")
    assert found.used == ("labels as given, 1 differs from its wording (of 6): ferries/4: labelled con, worded pro")


def test_of_many_mismatches_the_number_and_the_first_few_are_told() -> None:
    names = [f"issue-{n}" for n in range(4)]
    dataset = data_set(**{name: issue("pppppp", topic=f"{name} boats") for name in names})
    lines = compared(dataset, ALL).lines(Path("data.json"))
    assert len(lines) == 6
    assert lines[0].startswith("8 of 24 orientation labels differ from their wording; each is used as labelled; ")
    assert "“A if you agree with the first statement, which is the position against”" in lines[1]
    assert compared(dataset, ALL).used.endswith("; issue-2/5: labelled pro, worded con and 3 more")


@pytest.mark.parametrize("is_corrected", [False, True])
def test_a_manifest_keeps_all_of_it(is_corrected: bool) -> None:
    content = issue("pppppp")
    content["paraphrases"][0]["question"] = "A or B?"
    found = compared(data_set(ferries=content), ALL)
    found = OrientationLabels(found.checked, found.mismatches, found.unread, is_corrected)
    assert labels_used({"dataset": {"labels": json.loads(json.dumps(found.as_json()))}}) == found
    assert found.as_json()["used"] == ("by wording" if is_corrected else "as given")
