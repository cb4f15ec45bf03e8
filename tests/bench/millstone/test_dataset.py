from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.millstone.dataset import DatasetError, IssueDataset, build, load, select
from millstream.bench.millstone.dataset_file import contents_of_file, encode
from millstream.bench.millstone.reference import CONTROVERSIAL
from millstream.engine.runs.data_file import BYTES_MAX
from millstream.fixtures import full_size

WRITTEN = "a model writes them with `millstream data millstone … --rephrase MODEL --out FILE`"
Content = dict[str, Any]
Write = Callable[[dict[str, Content]], Path]


def test_issues_come_in_the_order_of_their_ids_and_texts_to_the_letter(
    tiny: IssueDataset, tiny_content: dict[str, Content]
) -> None:
    assert [issue.id for issue in tiny.issues] == ["bells", "tea"]
    tea = tiny.issues[1]
    assert tea.question == "Is tea better than coffee?"
    assert [argument.text for argument in tea.arguments] == tiny_content["tea"]["pros"] + tiny_content["tea"]["cons"]
    assert [(entry.question, entry.orientation) for entry in tea.paraphrases] == [
        (entry["question"], entry["orientation"]) for entry in tiny_content["tea"]["paraphrases"]
    ]
    assert tiny.name == "issues"


def test_argument_ids_count_within_their_side(tiny: IssueDataset) -> None:
    arguments = tiny.issues[0].arguments
    assert [argument.id for argument in arguments] == ["pro-1", "pro-2", "con-1", "con-2", "con-3", "con-4"]
    assert [argument.side for argument in arguments] == ["pro"] * 2 + ["con"] * 4


def test_citations_are_the_known_numbers_in_order_of_first_mention(tiny: IssueDataset) -> None:
    citations = {argument.id: argument.citations for argument in tiny.issues[1].arguments}
    assert citations["pro-1"] == (("1", "A. Leaf, leaf.example"),)  # named twice, listed once
    assert citations["pro-2"] == ()
    assert citations["pro-3"] == (("2", "B. Bean, 2020"), ("10", "J. Jug"))  # [99] is no source
    assert citations["con-2"] == (("4", ""), ("1", "A. Leaf, leaf.example"))


def test_one_file_and_a_folder_of_the_same_issues_are_the_same_set(
    tiny: IssueDataset, tiny_content: dict[str, Content], tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"millstone_dataset": 1, "issues": tiny_content, "note": "passed over"}))
    assert load(path).issues == tiny.issues
    assert (load(path).digest, load(path).draw_digest) == (tiny.digest, tiny.draw_digest)
    assert load(path).name == "mine"


def _digest(content: dict[str, Content], orientation: bool) -> str:
    """The digest's definition, written a second time."""
    issues = {}
    for issue_id, issue in content.items():
        arguments = []
        for side, texts in (("pro", issue["pros"]), ("con", issue["cons"])):
            for number, text in enumerate(texts, 1):
                places = sorted((text.index(key), key) for key in issue["sources"] if key in text)
                citations = [[key.strip("[]"), issue["sources"][key]] for _, key in places]
                arguments.append({"id": f"{side}-{number}", "side": side, "text": text, "citations": citations})
        wordings = issue["paraphrases"] if orientation else [entry["question"] for entry in issue["paraphrases"]]
        issues[issue_id] = {
            "id": issue_id,
            "question": issue["question"],
            "arguments": arguments,
            "paraphrases": wordings,
        }
    text = json.dumps(issues, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def test_digests_are_of_the_canonical_json_of_what_can_stand_in_a_prompt(
    tiny: IssueDataset, tiny_content: dict[str, Content]
) -> None:
    assert tiny.digest == _digest(tiny_content, orientation=True)
    assert tiny.draw_digest == _digest(tiny_content, orientation=False)


def test_a_data_set_file_is_read_back_as_the_same_set_and_written_as_the_same_bytes(
    tiny: IssueDataset, tiny_content: dict[str, Content], tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(encode(tiny_content))
    assert (load(path).issues, load(path).digest) == (tiny.issues, tiny.digest)
    assert encode(contents_of_file(json.loads(path.read_bytes()), "mine")) == path.read_bytes()
    assert encode(dict(reversed(tiny_content.items()))) == path.read_bytes()
    assert build("mine", tiny_content).digest == tiny.digest


def test_a_set_without_paraphrases_can_not_be_loaded(tiny_content: dict[str, Content], tmp_path: Path) -> None:
    tiny_content["tea"]["paraphrases"] = []
    (tmp_path / "x.json").write_bytes(encode(tiny_content))
    with pytest.raises(DatasetError, match=r"x\.json: issues\[\"tea\"\]: paraphrases: expected 6, got none"):
        load(tmp_path / "x.json")


def _set(content: Content, path: tuple[str | int, ...], value: Any) -> None:
    target: Any = content
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("question",), "", "question: expected a text with words"),
        (("question",), "  \n", "question: expected a text with words"),
        (("question",), 3, "question: expected a text, got a number"),
        (("pros",), [], "pros: expected a list of length >= 1"),
        (("cons",), {}, "cons: expected a list, got an object"),
        (("cons", 1), None, "cons[1]: expected a text, got `null`"),
        (("pros", 4), "", "pros[4]: expected a text with words"),
        (("pros", 0), "half \ud800", "pros: expected text that UTF-8 can hold, got half of a surrogate pair"),
        (("sources",), [], "sources: expected an object, got a list"),
        (("sources", "[1]"), True, "sources[...]: expected a text, got `bool`"),
        (("paraphrases",), [{}], f"paraphrases: expected 6, got 1: {WRITTEN}"),
        (("paraphrases",), [],
         f"paraphrases: expected 6, got none: {WRITTEN}"),
        (("paraphrases", 2), "text", "paraphrases[2]: expected an object, got a text"),
        (("paraphrases", 5), {"orientation": "pro"},
         "paraphrases[5]: object missing required field `question`"),
        (("paraphrases", 0, "question"), " ", "paraphrases[0].question: expected a text with words"),
        (("paraphrases", 0, "orientation"), "Pro", "paraphrases[0].orientation: invalid enum value 'Pro'"),
        (("paraphrases", 0, "orientation"), 1.5, "paraphrases[0].orientation: expected a text, got a number"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named_with_what_was_expected_and_what_came(
    tiny_content: dict[str, Content], write: Write, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    _set(tiny_content["tea"], path, value)
    folder = write(tiny_content)
    with pytest.raises(DatasetError) as caught:
        load(folder)
    assert str(caught.value) == f"{folder / 'tea.json'}: {message}"


@pytest.mark.parametrize("field", ["question", "pros", "cons", "sources", "paraphrases"])
def test_a_missing_field_is_named(tiny_content: dict[str, Content], write: Write, field: str) -> None:
    del tiny_content["bells"][field]
    with pytest.raises(DatasetError, match=rf"bells\.json: {field}: expected .*, got nothing$"):
        load(write(tiny_content))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{\n  "question": ,\n}', "expected JSON, got something else at line 2 column 15: Expecting value"),
        (b"", "expected JSON, got something else at line 1 column 1: Expecting value"),
        (b'{"question": "\xe9"}', "expected UTF-8, got byte 0xe9 at offset 14"),
        (b"[1]", "expected an object, got a list"),
        (b"[" * 100_000, "expected data, got JSON nested too deeply to read"),
        (b"9" * 10_000, "expected data, got a number too long to read"),
        (b"\xef\xbb\xbf{\xff", "expected UTF-8, got byte 0xff at offset 4"),
        (b'{"question": "Yes?", "question": "No?"}', "question: expected once, got more than once"),
        (b'{"sources": {"[1]": [{"a": 0, "a": {"b": 1, "b": 2}}], "[2]": ""}}',
         'sources["[1]"][0].a: expected once, got more than once'),
    ],
)  # fmt: skip
def test_a_file_that_is_no_json_object_is_refused_with_the_place(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "one.json").write_bytes(data)
    with pytest.raises(DatasetError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'one.json'}: {message}"


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"millstone_dataset": 2, "issues": {}}, "millstone_dataset: expected 1, got 2"),
        ({"millstone_dataset": True, "issues": {}}, "millstone_dataset: expected 1, got true"),
        ({"millstone_dataset": 1}, "issues: expected an object, got nothing: the field is missing"),
        ({"millstone_dataset": 1, "issues": {}}, "issues: expected at least one issue, got none"),
        ({"millstone_dataset": 1, "issues": {"x": 4}}, 'issues["x"]: expected an object, got a number'),
        (
            {"millstone_dataset": 1, "issues": {"a/b": {}}},
            'issues["a/b"]: issue id: expected no space, slash or comma, got "a/b"',
        ),
        (
            {"question": "?"},
            'expected {"millstone_dataset": 1, "issues": {…}}, got an object without millstone_dataset: for files of'
            " one issue each, give their folder",
        ),
    ],
)
def test_a_file_that_is_no_data_set_is_refused(tmp_path: Path, root: Any, message: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(root))
    with pytest.raises(DatasetError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_byte_order_mark_is_passed_over(tiny: IssueDataset, tiny_content: dict[str, Content], tmp_path: Path) -> None:
    for name, content in tiny_content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8-sig")
    assert load(tmp_path).issues == tiny.issues
    (tmp_path / "ids.txt").write_text("tea\n", "utf-8-sig")
    assert select(tiny, str(tmp_path / "ids.txt")) == select(tiny, "tea")


def test_only_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for place in (tmp_path, tmp_path / "pipe.json"):
        with pytest.raises(DatasetError, match=r"pipe\.json: expected a file, got a pipe"):
            load(place)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    with pytest.raises(DatasetError, match="huge: expected a file of at most 64 MiB, got a larger one"):
        load(tmp_path / "huge")


def test_what_a_reader_would_not_take_is_not_made(tiny_content: dict[str, Content]) -> None:
    tiny_content["tea"]["sources"]["[1]"] = "x" * BYTES_MAX
    with pytest.raises(DatasetError, match="expected a data set of at most 64 MiB, got 2 issues that need 65: make"):
        encode(tiny_content)


def test_a_path_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected a folder of issue files, got a folder without any \.json file"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="expected a readable file or folder, got: No such file or directory"):
        load(tmp_path / "none")


def test_a_selection_keeps_order_and_the_digests_of_the_whole(tiny: IssueDataset) -> None:
    assert select(tiny) == tiny
    chosen = select(tiny, "tea")
    assert [issue.id for issue in chosen.issues] == ["tea"]
    assert (chosen.digest, chosen.draw_digest) == (tiny.digest, tiny.draw_digest)
    assert select(tiny, " tea, bells,") == tiny
    assert [issue.id for issue in select(tiny, "all", limit=1).issues] == ["bells"]


def test_a_selection_reads_ids_from_a_file(tiny: IssueDataset, tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("# my issues\n\ntea\tdata\tflag\n")
    assert select(tiny, str(path)) == select(tiny, "tea")
    path.write_text("# none\n")
    with pytest.raises(DatasetError, match=r"ids\.txt: expected at least one issue id, got none"):
        select(tiny, str(path))


def test_a_known_id_wins_over_a_file_of_its_name(
    tiny: IssueDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tea").write_text("bells\n")
    monkeypatch.chdir(tmp_path)
    assert [issue.id for issue in select(tiny, "tea").issues] == ["tea"]
    assert [issue.id for issue in select(tiny, "./tea").issues] == ["bells"]


def test_an_unknown_issue_is_refused_with_the_nearest_known(tiny: IssueDataset) -> None:
    with pytest.raises(DatasetError, match="issues: no issue 'Bell' among the 2 of the data set; nearest: bells"):
        select(tiny, "tea,Bell")
    with pytest.raises(DatasetError, match="nearest: "):
        select(tiny, ",".join(f"unknown-{number}" for number in range(500)))  # too long to be asked as a file's name


def test_a_selection_of_nothing_is_refused(tiny: IssueDataset) -> None:
    with pytest.raises(DatasetError, match="issues: expected at least one issue id, got none"):
        select(tiny, " , ")


def test_the_controversial_issues_are_ten_of_the_published_ones(tmp_path: Path, tiny: IssueDataset) -> None:
    chosen = select(load(full_size.ensure(tmp_path / "full")), "controversial")
    assert [issue.id for issue in chosen.issues] == sorted(CONTROVERSIAL)
    assert len(chosen.issues) == 10
    with pytest.raises(DatasetError, match="data set issues holds 0 of the 10 controversial issues, not Olympics, "):
        select(tiny, "controversial")
