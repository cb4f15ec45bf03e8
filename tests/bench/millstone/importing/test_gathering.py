"""Many files made one data set: every planted fault is reported once, nothing else is, and nothing is lost unsaid."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.millstone.checks import CheckRules
from millstream.bench.millstone.dataset import DatasetError, load
from millstream.bench.millstone.dataset_file import encode
from millstream.bench.millstone.importing.checkout import CheckoutIssue, read_places
from millstream.bench.millstone.importing.gathering import FileReports, gather
from millstream.engine.runs.data_file import BYTES_MAX
from millstream.fixtures import full_size

SAMPLE = Path(__file__).parents[4] / "fixtures/data/millstone"

# How the released issues lie: in data/ alone, in data_new/ alone, in both.
DATA_ALONE, NEW_ALONE, BOTH = 51, 37, 19


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in the authors' shape, without a fault: 126 files of 107 issues."""
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "data").mkdir()
    (checkout / "data_new").mkdir()
    (checkout / "scripts").mkdir()
    for at, (name, content) in enumerate(full_size.files()):
        if at < DATA_ALONE or at >= DATA_ALONE + NEW_ALONE:
            (checkout / "data" / name).write_bytes(content)
        if at >= DATA_ALONE:
            (checkout / "data_new" / name).write_bytes(content)
    return checkout


@pytest.fixture
def checkout(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "millstone"))


def gathered(*places: Path, fix: bool = False) -> FileReports:
    return gather(read_places(places), CheckRules(fix_orientation=fix))


def told(result: FileReports, root: Path) -> list[tuple[str, str, str, str, bool]]:
    """Each finding: its file within the root, what, detail, what became of the file, whether it is a fault."""
    return [
        (file.file.removeprefix(f"{root}/"), one.what, one.detail, file.state, one.is_fault)
        for file in result.files
        for one in file.findings
    ]


def test_a_checkout_without_faults_is_clean_and_the_same_set_as_its_issues(released: Path, tmp_path: Path) -> None:
    result = gathered(released)
    assert told(result, released) == [] and result.faults == 0
    assert [result.count(state) for state in ("used", "superseded", "left out")] == [107, BOTH, 0]
    assert [result.files[at].file for at in (0, -1)] == [
        str(released / "data/American-Civil-Liberties-Union-ACLU.json"),
        str(released / "data_new/zoos.json"),
    ]
    whole = load(full_size.ensure(tmp_path / "full"))
    out = tmp_path / "out.json"
    out.write_bytes(result.encoded())
    assert load(out).digest == result.dataset("out").digest == whole.digest
    assert load(out).issues == whole.issues


def test_the_sample_issues_are_clean_and_keep_their_digest(tmp_path: Path) -> None:
    result = gathered(SAMPLE)
    assert (len(result.drafts), told(result, SAMPLE)) == (12, [])
    out = tmp_path / "sample.json"
    out.write_bytes(result.encoded())
    assert load(out).digest == load(SAMPLE).digest
    again = gathered(out)
    assert again.encoded() == result.encoded() and told(again, out) == []


def test_of_two_usable_files_the_later_counts_whatever_the_order_of_names(tmp_path: Path) -> None:
    name, content = next(full_size.issues())
    for folder, question in (("z", "First?"), ("a", "Second?")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.json").write_text(json.dumps({**content, "question": question}), "utf-8")
    first, second = tmp_path / "z", tmp_path / "a"
    assert gathered(first, second).drafts[0].question == "Second?"
    assert gathered(second, first).drafts[0].question == "First?"
    assert [file.state for file in gathered(first, second).files] == ["superseded", "used"]


def test_a_later_file_that_cannot_be_used_leaves_the_earlier_in_place(tmp_path: Path) -> None:
    name, content = next(full_size.issues())
    for folder in ("data", "data_new"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / f"{name}.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "data_new" / f"{name}.json").write_text("{}", "utf-8")
    result = gathered(tmp_path)
    assert [file.state for file in result.files] == ["used", "left out"]
    assert result.left_out() == () and result.drafts[0].content() == content


def test_data_set_files_and_folders_can_be_mixed(tmp_path: Path) -> None:
    issues = dict(list(full_size.issues())[:3])
    first, second, third = issues
    whole = tmp_path / "whole.json"
    whole.write_bytes(encode({name: issues[name] for name in (first, second)}))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / f"{third}.json").write_text(json.dumps(issues[third]), "utf-8")
    result = gathered(whole, tmp_path / "more")
    assert result.contents() == issues
    assert result.files[0].file == f'{whole}: issues["{first}"]'


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_text("[]"), lambda path: None])
def test_a_place_that_holds_no_issues_at_all_is_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "place")
    with pytest.raises(DatasetError, match="place: expected "):
        gathered(tmp_path / "place")


def test_only_one_of_the_two_released_folders_may_be_there(released: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shutil.copytree(released / "data_new", tmp_path / "data_new")
    assert len(gathered(tmp_path).drafts) == NEW_ALONE + BOTH
    assert gathered(tmp_path).drafts == gathered(tmp_path / "data_new").drafts


def test_what_is_no_file_is_told_and_never_opened(tmp_path: Path) -> None:
    name, content = next(full_size.issues())
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "elsewhere").write_text(json.dumps(content), "utf-8")
    (folder / f"{name}.json").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe.json")
    (folder / "device.json").symlink_to("/dev/zero")
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    with (folder / "huge.json").open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket.json"))
        result = gathered(folder)
    assert [draft.id for draft in result.drafts] == [name]
    assert [one[:4] for one in told(result, folder)] == [
        ("device.json", "not a file", "expected a file, got a device", "left out"),
        ("gone.json", "unreadable", "expected a readable file or folder, got: No such file or directory", "left out"),
        ("huge.json", "unreadable", "expected a file of at most 64 MiB, got a larger one", "left out"),
        ("pipe.json", "not a file", "expected a file, got a pipe", "left out"),
        ("socket.json", "not a file", "expected a file, got a socket", "left out"),
    ]
    with pytest.raises(DatasetError, match=r"pipe\.json: expected a file, got a pipe"):
        gathered(folder / "pipe.json")


def test_a_byte_order_mark_is_a_remark_and_changes_nothing(tmp_path: Path) -> None:
    issues = dict(list(full_size.issues())[:2])
    remark = ("byte order mark", "before the text: passed over", "used", False)
    (tmp_path / "in").mkdir()
    for name, content in issues.items():
        (tmp_path / "in" / f"{name}.json").write_text(json.dumps(content), "utf-8-sig")
    result = gathered(tmp_path / "in")
    assert [one[1:] for one in told(result, tmp_path)] == [remark] * 2 and result.contents() == issues
    whole = tmp_path / "whole.json"
    whole.write_bytes(codecs.BOM_UTF8 + encode(issues))
    result = gathered(whole)
    assert [one[1:] for one in told(result, tmp_path)] == [remark] and result.contents() == issues
    assert load(whole).issues == load(tmp_path / "in").issues


def test_an_issue_with_a_field_that_stands_twice_is_left_out_and_the_field_named(tmp_path: Path) -> None:
    issues = dict(list(full_size.issues())[:3])
    first, second, third = issues
    texts = {name: json.dumps(content) for name, content in issues.items()}
    texts[first] = texts[first].replace('"orientation": "pro"}', '"orientation": "pro", "orientation": "con"}', 1)
    texts[second] = '{"question": "Another?", "sources": {"[1]": "a", "[1]": "b"}, ' + texts[second][1:]
    (tmp_path / "in").mkdir()
    for name, text in texts.items():
        (tmp_path / "in" / f"{name}.json").write_text(text, "utf-8")
    whole = tmp_path / "whole.json"
    inside = ", ".join(f"{json.dumps(name)}: {text}" for name, text in texts.items())
    whole.write_text(f'{{"millstone_dataset": 1, "issues": {{{inside}}}}}', "utf-8")
    for place in (tmp_path / "in", whole):
        result = gathered(place)
        faults = [(file.issue, one.what, one.detail) for file in result.files for one in file.findings]
        assert sorted(faults) == sorted([
            (first, "duplicate field", "paraphrases[0].orientation: expected once, got more than once"),
            (second, "duplicate field", "question: expected once, got more than once"),
            (second, "duplicate field", "sources: expected once, got more than once"),
        ])  # fmt: skip
        assert result.contents() == {third: issues[third]}


def test_an_issue_that_stands_twice_in_a_data_set_file_is_left_out_and_twice_issues_refused(tmp_path: Path) -> None:
    (one, content), (two, other) = list(full_size.issues())[:2]
    first, second, again = (json.dumps({name: value})[1:-1] for name, value in ((one, content), (two, other), (one, 3)))
    path = tmp_path / "whole.json"
    path.write_text(f'{{"millstone_dataset": 1, "issues": {{{first}, {second}, {again}}}}}', "utf-8")
    result = gathered(path)
    assert result.contents() == {two: other}
    (report,) = (file for file in result.files if file.issue == one)
    assert [(found.what, found.detail) for found in report.findings] == [
        ("duplicate field", f'issues["{one}"]: expected once, got more than once')
    ]
    path.write_text(f'{{"millstone_dataset": 1, "issues": {{{first}}}, "issues": {{{second}}}}}', "utf-8")
    with pytest.raises(DatasetError, match=r"whole\.json: issues: expected once, got more than once"):
        gathered(path)


@given(st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=40)), max_size=4))
def test_garbage_in_any_number_leaves_good_issues_untouched(garbage: list[tuple[str, bytes]]) -> None:
    name, content = next(full_size.issues())
    sources = [CheckoutIssue("file", issue, data.decode("latin-1")) for issue, data in garbage]
    result = gather([*sources, CheckoutIssue("good", name, content), *sources], CheckRules())
    assert result.contents() == {name: content}
    assert [file.state for file in result.files].count("used") == 1
    assert len(result.files) == 2 * len(garbage) + 1
