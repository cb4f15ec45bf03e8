"""Conversations as they are read: shapes of files, checks with file and line, ids that stay, digest, the first N."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.chameleon.dataset import DatasetError, build, by_domains, content_of, load, select, slug_of
from millstream.bench.chameleon.dataset_file import FileEntry

SAMPLE = Path(__file__).parents[3] / "fixtures/data/chameleon"


def content(topic: str = "Salt and health", **changes: Any) -> dict[str, Any]:
    plain = {
        "topic": topic,
        "domain": "Nutrition",
        "initial_belief": "critical",
        "debate_strength": "strong",
        "questions": ["How much salt is too much?", "Why do guidelines differ?"],
    }
    return {**plain, **changes}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_one_object_a_list_json_lines_and_a_folder_give_the_same_conversations(tmp_path: Path) -> None:
    both = [content(), content("Sugar taxes")]
    listed = load(written(tmp_path, "list.json", json.dumps(both)))
    in_lines = load(written(tmp_path, "lines.jsonl", "\n".join(map(json.dumps, both)) + "\n"))
    misnamed = load(written(tmp_path, "lines.json", "\n".join(map(json.dumps, both))))
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, each in zip(("salt-and-health", "sugar-taxes"), both, strict=True):
        written(folder, f"{name}.json", json.dumps(each))
    written(folder, "README.md", "not data")
    assert listed.conversations == in_lines.conversations == misnamed.conversations == load(folder).conversations
    assert {each.digest for each in (listed, in_lines, misnamed, load(folder))} == {listed.digest}
    assert [each.id for each in listed.conversations] == ["salt-and-health", "sugar-taxes"]
    one = load(folder / "sugar-taxes.json")
    assert (one.conversations[0].topic, one.conversations[0].debate_strength) == ("Sugar taxes", "strong")
    assert content_of(one.conversations[0]) == both[1]


def test_a_csv_has_a_conversation_a_row_its_first_question_first(tmp_path: Path) -> None:
    text = (
        "Question,Pushback_1,Pushback_2\r\n"
        '"Why is ice slippery, really?",I thought it melts.,"Are you sure?\nMy teacher said no."\r\n'
        "\r\n"
        "How old is glass?,It flows.,\r\n"
    )
    data = load(written(tmp_path, "pushes.csv", text))
    first, second = data.conversations
    assert first.questions == (
        "Why is ice slippery, really?",
        "I thought it melts.",
        "Are you sure?\nMy teacher said no.",
    )
    assert (first.topic, first.domain, first.id) == (first.questions[0], "pushes", "why-is-ice-slippery-really")
    assert second.questions == ("How old is glass?", "It flows.")


def test_columns_of_known_names_are_no_questions(tmp_path: Path) -> None:
    named = load(written(tmp_path, "a.tsv", "id\tTopic\tdomain\tq1\tq2\nx1\tIce\tPhysics\tWhy?\tReally?\n"))
    assert (named.conversations[0].id, named.conversations[0].topic) == ("x1", "Ice")
    assert named.conversations[0].questions == ("Why?", "Really?")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", r"a\.json: expected JSON"),
        ("a.json", "3", r"a\.json: expected a conversation or a list of them, got a number"),
        ("a.json", "[]", "expected at least one conversation, got none"),
        ("a.json", json.dumps([content(), 3]), r"a\.json: \[1\]: expected an object, got a number"),
        ("a.json", json.dumps(content(topic=" ")), r"a\.json: topic: expected a text, got an empty one"),
        ("a.json", json.dumps(content(questions=[])), r"questions: expected at least one, got an empty list"),
        ("a.json", json.dumps(content(questions=["How?", 1])), r"questions\[1\]: expected a text, got a number"),
        ("a.json", json.dumps(content(questions="How?")), r"questions: expected a list, got a text"),
        ("a.json", json.dumps(content(kinds=["x"])), r"kinds: expected one for each of 2 questions, got 1"),
        ("a.json", json.dumps(content(id="a b")), r"id: expected a name without space, slash or comma"),
        ("a.json", json.dumps(content(questions=["\ud800"])), r"questions\[0\]: expected a text, got one with a lone"),
        (
            "a.jsonl",
            json.dumps(content()) + "\n{}\n",
            r"a\.jsonl line 2: expected a conversation, with topic and q.* got no field",
        ),
        ("a.jsonl", json.dumps(content()) + "\n[1", r"a\.jsonl line 2: expected JSON"),
        (
            "a.jsonl",
            '{"id": 1, "question": "How?", "answer": "So."}',
            r"questions \(a list\), got id, question, answer",
        ),
        (
            "a.csv",
            "id,question,answer,kind\n1,What is 19 * 74?,1406,product\n",
            "got the columns id, question, answer,",
        ),
        ("a.csv", "name,city\nAda,London\n", r"line 1: expected a conversation a row, in the columns question_1, q"),
        ("a.csv", "id,topic\n1,Ice\n", "got the columns id, topic"),
        ("a.csv", "Why is ice slippery?,I doubt it.\nHow old is glass?,It flows.\n", "got the columns Why is ice"),
        ("a.csv", "Q1,Q2\nWhy?,,\n", r"a\.csv line 2: expected 2 cells, as the first line has, got 3"),
        ("a.csv", "Q1,Q2,Q3\nWhy?,,Sure?\n", r"a\.csv line 2: turn 2: expected a question, got an empty cell"),
        ("a.csv", 'Q1,Q2\nWhy?,"open\n', r"a\.csv line 2: expected a row of cells"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load(written(tmp_path, name, text))


def test_an_empty_folder_and_a_missing_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected a folder with"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="expected a readable file or folder"):
        load(tmp_path / "nothing.json")


def entries(*contents: dict[str, Any]) -> list[FileEntry]:
    return [FileEntry(each, f"place {at}") for at, each in enumerate(contents)]


def test_ids_stay_wherever_a_conversation_stands_and_are_told_apart_by_what_it_holds() -> None:
    alike = [content(), content(questions=["Another?"]), content("Sugar")]
    there = {(each.topic, each.questions): each.id for each in build("x", entries(*alike)).conversations}
    turned = {(each.topic, each.questions): each.id for each in build("x", entries(*reversed(alike))).conversations}
    assert there == turned
    assert len(set(there.values())) == 3
    assert there["Salt and health", ("How much salt is too much?", "Why do guidelines differ?")].startswith(
        "salt-and-health-"
    )
    twice = build("x", entries(content(), content())).conversations
    assert twice[1].id == f"{twice[0].id}-2"


def test_a_given_id_that_comes_twice_is_refused_and_a_made_one_gives_way_to_it() -> None:
    with pytest.raises(DatasetError, match=r"place 1: id: expected each once, got \"a\", as in place 0"):
        build("x", entries(content(id="a"), content("Other", id="a")))
    both = build("x", entries(content("Salt", id="sugar"), content("Sugar")))
    assert both.conversations[0].id == "sugar"
    assert both.conversations[1].id.startswith("sugar-")
    assert build("x", entries(content(id=7))).conversations[0].id == "7"


def test_the_digest_is_of_the_content_and_not_of_its_order() -> None:
    one, other = content(), content("Sugar")
    digest = build("x", entries(one, other)).digest
    assert build("y", entries(other, one)).digest == digest
    assert build("x", entries(one, content("Sugar", questions=["Why?"]))).digest != digest
    assert build("x", entries(one, content("Sugar", initial_belief="balanced"))).digest != digest


def test_the_first_n_take_the_domains_in_turn_and_keep_the_whole_sets_digest() -> None:
    domains = ["A", "A", "A", "B", "C", "B"]
    data = build("x", entries(*(content(f"T{at}", domain=domain) for at, domain in enumerate(domains))))
    assert [each.topic for each in by_domains(data.conversations)] == ["T0", "T3", "T4", "T1", "T5", "T2"]
    some = select(data, 4)
    assert [each.topic for each in some.conversations] == ["T0", "T3", "T4", "T1"]
    assert (some.digest, some.whole) == (data.digest, data.conversations)
    assert len(select(data, None).conversations) == len(select(data, 99).conversations) == 6
    with pytest.raises(DatasetError, match=r"conversations \(0\) must be >= 1"):
        select(data, 0)


def test_the_sample_data_load_and_its_first_twelve_are_of_twelve_domains() -> None:
    data = load(SAMPLE)
    assert len(data.conversations) == 24
    assert len({each.domain for each in select(data, 12).conversations}) == 12
    assert {len(each.questions) for each in data.conversations} == {15}


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Salt, sugar & fat", "salt-sugar-fat"),
        ("Énergie éolienne", "énergie-éolienne"),
        ("  ?! ", "conversation"),
        ("x" * 200, "x" * 60),
        ("word " * 40, "-".join(["word"] * 12)),
    ],
)
def test_a_slug_has_words_of_any_script_and_ends_with_one(text: str, slug: str) -> None:
    assert slug_of(text) == slug
