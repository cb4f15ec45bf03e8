"""What changed between two runs of one model: answers are joined by their ids, counted by issue and by way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, json

from millstream.bench.evaluation.door.label import Label, LabelChoice, Labeller
from millstream.bench.evaluation.page.changed import with_changes
from millstream.bench.evaluation.reading.changes import changes_between
from millstream.bench.evaluation.reading.labelling.sample import AnswerFile
from millstream.engine.runs.journal import sealed
from millstream.engine.runs.pairs import Pair
from millstream.report.sections import PageContents, Section

CHOICES = (LabelChoice("A"), LabelChoice("B"))


class Answer(Struct, frozen=True):
    id: str
    text: str | None
    model: str = "lab/x"
    temperature: float | None = 0.5
    effort: str | None = None
    status: str = "ok"


def label_of(answer: Answer) -> Label:
    # An answer that nobody could read has no reading.
    readings = {} if answer.text == "?" else {"ours": answer.text or ""}
    return Label(text=answer.text or "", choices=CHOICES, readings=readings)


def run(path: Path, texts: Mapping[str, str], model: str = "lab/x") -> AnswerFile:
    path.write_bytes(b"".join(sealed(json.encode(Answer(name, text, model))) for name, text in texts.items()))
    return AnswerFile(path, Labeller(Answer, label_of), "Walks")


def issue_of(name: str) -> str:
    return name.partition("/")[0]


BEFORE = {"cats/1": "A", "cats/2": "A", "cats/3": "B", "dogs/1": "A", "dogs/2": "?", "owls/1": "A", "owls/2": "B"}
AFTER = {"cats/1": "B", "cats/2": "B", "cats/3": "A", "dogs/1": "A", "dogs/2": "A", "owls/1": "B", "fish/1": "A"}


def test_answers_of_both_runs_are_counted_by_issue_the_largest_share_first(tmp_path: Path) -> None:
    runs = {"one": run(tmp_path / "one.jsonl", BEFORE), "two": run(tmp_path / "two.jsonl", AFTER)}
    (change,) = changes_between(runs, issue_of)
    assert (change.pair, change.before, change.after) == (Pair("lab/x", 0.5), "one", "two")
    # Cats: A to B twice, B to A once, of three. Owls: the one answer that both have changed. Dogs: one, unchanged;
    # the other has no reading in the first run. Alone: owls/2 in the first, dogs/2 and fish/1 in the second.
    units = [(each.unit, each.compared, each.changed, each.ways) for each in change.units]
    assert units == [
        ("cats", 3, 3, ((("A", "B"), 2), (("B", "A"), 1))),
        ("owls", 1, 1, ((("A", "B"), 1),)),
        ("dogs", 1, 0, ()),
    ]
    assert (change.compared, change.changed, change.alone_before, change.alone_after) == (5, 4, 1, 2)
    assert change.ways == {("A", "B"): 3, ("B", "A"): 1}


def test_a_later_run_is_compared_with_the_first_that_has_its_model(tmp_path: Path) -> None:
    runs = {
        "one": run(tmp_path / "one.jsonl", {"cats/1": "A"}),
        "else": run(tmp_path / "else.jsonl", {"cats/1": "A"}, model="lab/y"),
        "two": run(tmp_path / "two.jsonl", {"cats/1": "B"}),
        "three": run(tmp_path / "three.jsonl", {"cats/1": "A"}),
    }
    found = changes_between(runs, issue_of)
    assert [(change.before, change.after, change.changed) for change in found] == [
        ("one", "two", 1),
        ("one", "three", 0),
    ]


def test_the_page_says_it_in_a_sentence_and_two_tables_after_its_first_section(tmp_path: Path) -> None:
    runs = {"one": run(tmp_path / "one.jsonl", BEFORE), "two": run(tmp_path / "two.jsonl", AFTER)}
    contents = PageContents(sections=(Section("summary", "Summary", ""), Section("last", "Last", "")))
    made = with_changes(contents, "walks", changes_between(runs, issue_of), "walk")
    assert [section.name for section in made.sections] == ["summary", "walks-changed", "last"]
    said = made.sections[1].body
    assert "from one to two: 4 of 5 answers are read otherwise (80.0%), in 2 of 3 walks." in said
    assert "Most often: A to B (3). 3 answers are in one of the two alone" in said
    ways, units = made.tables
    assert ways.rows[0][3:] == ("A", "B", 3, 5, 0.6)
    assert units.rows[0][3:] == ("cats", 3, 3, 1.0, "A to B (2)")


def test_runs_that_share_no_answer_say_so_and_have_no_table(tmp_path: Path) -> None:
    runs = {"one": run(tmp_path / "one.jsonl", {"a/1": "A"}), "two": run(tmp_path / "two.jsonl", {"b/1": "A"})}
    contents = PageContents(sections=(Section("summary", "Summary", ""),))
    made = with_changes(contents, "walks", changes_between(runs, issue_of))
    assert "the runs share no answer" in made.sections[1].body and made.tables == ()
