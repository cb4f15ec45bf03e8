"""The file of labels: what a spreadsheet makes of it is read, what is wrong in it is told with its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.evaluation.door.kept_answer import Key, Verdict
from millstream.bench.evaluation.door.label import Exchange, Label, LabelCertainty, LabelChoice
from millstream.bench.evaluation.reading.labelling import label_file
from millstream.bench.evaluation.reading.labelling.label_file import CELL_MAX, changed_in, inert_cell, labels_in
from millstream.bench.evaluation.reading.labelling.sample import SampleEntry
from millstream.configuration.errors import UsageError
from millstream.engine.fault import LocalFault
from millstream.engine.pairs import Pair
from millstream.engine.runs.data_file import DatasetError

CHOICES = (LabelChoice("A"), LabelChoice("B"), LabelChoice("O", "other"))
COLUMNS = ("model", "temperature", "id", "text_sha256", "issue", "question", "text", "label")
# printf t | sha256sum
T = "sha256:e3b98a4da31a127d"
HEADER = "model,temperature,id,label\n"
FORMULAS = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")


def answer(
    number: int = 0, text: str = "position <<A>>", temperature: float | None = None, question: str = ""
) -> SampleEntry:
    label = Label(text=text, choices=CHOICES, question=question, about={"issue": "tea"})
    return SampleEntry(Key(Pair("lab/x", temperature), f"tea/1/baseline/{number}"), label)


def shown(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()[:16]}"


def read(path: Path, sample: Sequence[SampleEntry] = ()) -> list[str | None]:
    """The labels in a file; without a sample, whatever its texts are."""
    sheet = label_file.read(path)
    labels = [entry.label for entry in sample] or [answer().label] * len(sheet)
    return [None if given is None else given.label for given in labels_in(sheet, labels)]


def cells_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))


def test_it_holds_a_row_for_each_answer_with_an_empty_label(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    label_file.begin(path, [answer(0, question="Tea? A or B."), answer(1, "two\nlines", 0.5, "Tea? A or B.")])
    assert cells_of(path) == [
        list(COLUMNS),
        ["lab/x", "", "tea/1/baseline/0", shown("position <<A>>"), "tea", "Tea? A or B.", "position <<A>>", ""],
        [
            "lab/x",
            "0.5",
            "tea/1/baseline/1",
            shown("two\nlines"),
            "tea",
            "Tea? A or B.",
            "two\nlines",
            "",
        ],
    ]
    assert read(path) == [None, None]


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    sample = [answer(n, f'"{n}";\n\n,', n / 10) for n in range(4)]
    label_file.begin(path, sample, {sample[0].key: Verdict("A"), sample[1].key: Verdict("other")})
    assert read(path, sample) == ["A", "other", None, None]
    assert label_file.read(path).keys == [entry.key for entry in sample]
    assert sorted(tmp_path.iterdir()) == [path]


STEPS = (LabelCertainty("1", "clear", 1.0), LabelCertainty("2", "likely", 0.67))


def test_history_and_certainty_have_columns_where_people_need_them(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    asked = [
        SampleEntry(
            Key(Pair("lab/x", None), f"c/{turn}"),
            Label(text="t", choices=CHOICES, question="q", certainties=STEPS, history=[Exchange("why?", "so")] * turn),
        )
        for turn in range(2)
    ]
    label_file.begin(path, asked, {asked[0].key: Verdict("A", confidence=0.67)})
    assert cells_of(path) == [
        ["model", "temperature", "id", "text_sha256", "history", "question", "text", "label", "certainty"],
        ["lab/x", "", "c/0", T, "", "q", "t", "A", "0.67"],
        ["lab/x", "", "c/1", T, "Question: why?\n\nAnswer: so", "q", "t", "", ""],
    ]
    labels = [entry.label for entry in asked]
    assert labels_in(label_file.read(path), labels) == [Verdict("A", confidence=0.67), None]
    for cell, value in (("0,67", 0.67), ("1", 1.0), ("Clear", 1.0), ("", None)):
        path.write_text(f'model,temperature,id,label,certainty\nlab/x,,c/0,A,"{cell}"\n')
        assert labels_in(label_file.read(path), labels[:1]) == [Verdict("A", confidence=value)]
    path.write_text("model,temperature,id,label,certainty\nlab/x,,c/0,A,2\n")
    with pytest.raises(
        UsageError, match=r"line 2: certainty: expected 1 \(clear\), 0.67 \(likely\) or nothing, got '2'"
    ):
        labels_in(label_file.read(path), labels[:1])


@given(st.text())
def test_no_cell_begins_a_formula_or_holds_a_control_character(text: str) -> None:
    cell = inert_cell(text)
    assert not cell.startswith(FORMULAS) and not cell.lstrip().startswith(FORMULAS)
    assert all(line.isprintable() for line in cell.split("\n"))
    assert "\r" not in cell and "\t" not in cell


@pytest.mark.parametrize("first", FORMULAS)
def test_a_text_that_a_spreadsheet_would_compute_gets_a_sign_in_front(first: str, tmp_path: Path) -> None:
    text = f"{first}HYPERLINK(1)"
    assert inert_cell(text).startswith("'")
    assert inert_cell(f" \n{text}").startswith("'") or first.isspace()
    # A model and an id are read back as they were, whatever they begin with.
    odd = SampleEntry(Key(Pair("=lab/x", None), f"{first.strip()}tea/1/baseline/0"), answer(text=text).label)
    label_file.begin(tmp_path / "l.csv", [odd])
    assert all(not cell.startswith(FORMULAS) for cell in cells_of(tmp_path / "l.csv")[1])
    assert label_file.read(tmp_path / "l.csv").keys == [odd.key]


def test_ordinary_texts_stay_as_they_are() -> None:
    assert inert_cell("I'd say: position <<A>>, “surely” – 漢字\n\n- no") == (
        "I'd say: position <<A>>, “surely” – 漢字\n\n- no"
    )
    assert inert_cell("'tis A") == "'tis A"


def test_a_text_longer_than_a_cell_is_cut_and_says_so() -> None:
    cell = inert_cell("\U0001f600" * (CELL_MAX + 5_000))
    assert cell.endswith("\n[5,000 more characters: see records.jsonl]")
    # What Excel counts.
    assert len(cell.encode("utf-16-le")) // 2 <= 32_767


def test_a_label_of_a_text_that_has_changed_since_the_sheet_was_written_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    sample = [answer(0, "one"), answer(1, "two")]
    label_file.begin(path, sample, {entry.key: Verdict("A") for entry in sample})
    now = [sample[0].label, answer(1, "another").label]
    sheet = label_file.read(path)
    assert labels_in(sheet, now) == [Verdict("A"), None]
    assert (changed_in(sheet, now), changed_in(sheet, [entry.label for entry in sample])) == (1, 0)


# What spreadsheets save


@pytest.mark.parametrize("delimiter", ",;\t")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_whatever_a_spreadsheet_saves_is_read(delimiter: str, encoding: str, newline: str, tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    sample = [answer(n, f"déjà; {n},\n\tvu", 0.5) for n in range(3)]
    label_file.begin(path, sample)
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=delimiter, lineterminator=newline)
    header, *rows = cells_of(path)
    writer.writerow([*(name.upper() for name in header), "notes"])
    for row, label in zip(rows, ("a", " O ", ""), strict=True):
        # A comma for the point, quoted newlines of its own, empty cells at the end.
        writer.writerow([row[0], "0,5", *row[2:6], row[6].replace("\n", newline), label, "mine", "", ""])
    writer.writerow([""] * len(header))
    path.write_bytes(written.getvalue().encode(encoding))
    assert read(path, sample) == ["A", "other", None]
    assert label_file.read(path).keys == [answer(n, "", 0.5).key for n in range(3)]


@pytest.mark.parametrize(
    ("said", "label"),
    [("A", "A"), ("b", "B"), ("o", "other"), ("Other", "other"), (" OTHER ", "other"), ("", None), ("  ", None)],
)
def test_a_label_is_read_in_any_case(said: str, label: str | None, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(f"{HEADER}lab/x,,tea/1/baseline/0,{said}\n")
    assert read(tmp_path / "l.csv") == [label]


# What is wrong

ROW = "lab/x,,tea/1/baseline/{},{}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + ROW.format(0, "A") + ROW.format(1, "C"), "line 3: label: expected A, B, O (other) or nothing"),
        (HEADER + '\n"lab/x\n\n",,x,\n' + ROW.format(1, "A B"), "line 6 (row 4): label: expected"),
        (HEADER + ROW.format(0, "A") + ROW.format(0, "A"), "line 3: id tea/1/baseline/0 of lab/x already stands in"),
        (HEADER + "lab/x,01. May,tea,\n", "line 2: temperature: expected a number or nothing, got '01. May'"),
        (HEADER + "lab/x,,tea\n", "line 2: expected 4 cells, got 3"),
        (HEADER + "lab/x,,tea,A,more\n", "line 2: expected 4 cells, got 5"),
        (HEADER + ROW.format(0, "A") + 'lab/x,,"tea,\n', "line 3: expected CSV, got what is none"),
        (HEADER + 'lab/x,,"tea"s,A\n', "line 2: expected CSV, got what is none"),
        (HEADER, "expected rows of answers, got a header alone"),
        ("", "expected the columns model, temperature, id, label in its first line, got none"),
        ("a,b\n1,2\n", "expected the columns model, temperature, id, label in its first line, got 'a,b'"),
        ("model,temperature,id,label,Label\n", "expected one column label, got 2"),
        ("x" * 100_000, "expected the columns"),
        ('"' + "x" * 300_000, "line 1: expected CSV, got what is none"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(UsageError) as error:
        read(tmp_path / "l.csv")
    assert said in str(error.value) and "l.csv" in str(error.value)
    assert len(str(error.value)) < 400
    assert (tmp_path / "l.csv").read_text() == text


@pytest.mark.parametrize("data", [b"\x00\x01\x02\xff", b"\xff\xfe\x00", b"PK\x03\x04\xff\x00"])
def test_a_file_that_is_no_text_is_told_as_such(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(data)
    with pytest.raises(UsageError, match=r"l\.csv: expected a CSV file of labels, got something else"):
        read(tmp_path / "l.csv")


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected a file, got a folder"):
        read(tmp_path)


def test_a_file_that_is_there_is_never_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("mine")
    with pytest.raises(FileExistsError):
        label_file.begin(tmp_path / "l.csv", [answer()])
    assert (tmp_path / "l.csv").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_a_local_fault(tmp_path: Path) -> None:
    with pytest.raises(LocalFault, match=r"\(No such file or directory\): make its folder first, or name another"):
        label_file.begin(tmp_path / "nowhere/l.csv", [answer()])


def test_where_a_row_stands_is_told_in_lines_and_in_rows(tmp_path: Path) -> None:
    label_file.begin(tmp_path / "l.csv", [answer(0, "two\nlines"), answer(1)])
    file = label_file.read(tmp_path / "l.csv")
    assert [file.where(at) for at in range(2)] == [f"{file.path} line 2", f"{file.path} line 4 (row 3)"]
    assert file.keys[1] == Key(Pair("lab/x", None), "tea/1/baseline/1")
