"""Claims about what people are asked about an answer of MillStone, and what their labels are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import structs

from millstream.bench.evaluation.door.kept_answer import Verdict, key_of
from millstream.bench.evaluation.reading.labelling.comparison import ReadingComparison, compare_rater
from millstream.bench.evaluation.reading.labelling.sample import SampleEntry, StratumSizes
from millstream.bench.millstone.dataset import IssueDataset
from millstream.bench.millstone.review import AnswerToLabel, label_of, questions_of, read_as
from millstream.metrics.millstone.stance import Letter, Reading


def answer(
    number: int, model: str = "lab/x", temperature: float | None = None, text: str = "position <<A>>"
) -> AnswerToLabel:
    return AnswerToLabel(
        id=f"tea/1/baseline/{number}", issue="tea", template=1, model=model, temperature=temperature, text=text
    )


# From the file


def test_every_wording_is_found_by_issue_and_template(tiny: IssueDataset) -> None:
    found = questions_of(tiny)
    assert len(found) == 12
    assert found["bells", 4] == "Bells, wording 4: A or B?"


# Against the readings


def recorded_as(
    text: str, letter: Letter | None, status: str = "ok", number: int = 0, model: str = "lab/x"
) -> AnswerToLabel:
    changes = {"id": f"tea/1/baseline/{number}", "model": model, "text": text, "letter": letter, "status": status}
    return structs.replace(answer(0), **changes)


def compared(labelled: list[tuple[AnswerToLabel, str]], recorded: Reading | None) -> Mapping[str, ReadingComparison]:
    sample = [SampleEntry(key_of(answer), label_of(answer, recorded, {})) for answer, _ in labelled]
    counts = Counter(entry.stratum for entry in sample)
    sizes = StratumSizes(counts, {reading: counts for entry in sample for reading in entry.label.readings})
    given = {entry.key: Verdict(label) for entry, (_, label) in zip(sample, labelled, strict=True)}
    return compare_rater(given, {entry.key: entry for entry in sample}, sizes).readings


def test_labels_are_compared_with_the_letter_of_the_record_and_with_the_other_reading() -> None:
    # The paper's reading finds an A in "position against"; the careful one takes it for no letter.
    odd = recorded_as("My position against it stands.", "A")
    plain = recorded_as("position <<B>>", "B", number=1)
    found = compared([(odd, "other"), (plain, "B")], "paper")
    assert list(found) == ["paper", "careful"]
    assert [found[reading].whole.labelled.agreed for reading in found] == [1, 2]
    # The rows are the person's.
    assert found["paper"].whole.labelled.labels == ("A", "B", "other")
    assert found["paper"].whole.labelled.table == ((0, 0, 0), (0, 1, 0), (1, 0, 0))


def test_the_letter_that_was_recorded_is_taken_as_it_stands() -> None:
    # As if a later version read the text otherwise: what counted for the scores is in the record.
    kept = recorded_as("position <<B>>", "A")
    assert [read_as(kept, reading, "careful") for reading in ("careful", "paper")] == ["A", "B"]


def test_a_refusal_names_no_letter_by_any_reading() -> None:
    refused = recorded_as("I can't answer A.", None, "refused")
    assert [read_as(refused, reading, "paper") for reading in ("paper", "careful")] == ["other", "other"]


def test_where_nothing_says_how_a_run_read_its_letters_are_a_reading_of_their_own() -> None:
    with_letter = recorded_as("position <<B>>", "B")
    found = compared([(with_letter, "B")], None)
    assert list(found) == ["recorded", "paper", "careful"]
    without = answer(1)
    found = compared([(with_letter, "B"), (without, "A")], None)
    assert {name: (of.whole.labelled.count, of.uncovered) for name, of in found.items()} == {
        "recorded": (1, 1),
        "paper": (2, 0),
        "careful": (2, 0),
    }
    assert found["paper"].whole.labelled.agreed == 2
    # Where the run says how it read, a record without its letter is read so again.
    assert read_as(without, "paper", "paper") == "A"


def test_each_model_has_figures_of_its_own() -> None:
    labels = ("A", "B", "A", "A", "A")
    answers = [recorded_as("A", "A", number=number, model=f"lab/{number % 2}") for number in range(5)]
    found = compared(list(zip(answers, labels, strict=True)), "paper")["paper"]
    assert {name: (one.labelled.count, one.labelled.agreed) for name, one in found.models.items()} == {
        "lab/0": (3, 3),
        "lab/1": (2, 1),
    }
    assert (found.whole.labelled.count, found.whole.labelled.agreed) == (5, 4)


def test_each_temperature_of_a_model_has_figures_of_its_own() -> None:
    labelled = [(answer(0, temperature=t), "A") for t in (None, 0.0, 0.5)]
    assert list(compared(labelled, "paper")["paper"].models) == ["lab/x", "lab/x @ 0", "lab/x @ 0.5"]
