"""The prompts of a load test: files of any usual shape and both benchmarks' data, none of which a cache could know."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.bench.load import prompt_sources as inputs
from millstream.bench.load.prompt_file import read_prompts
from millstream.bench.made_prompts.prompts import CallParameters, Prompt
from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.work import GRID_MOST, SAMPLE
from millstream.configuration.errors import UsageError
from millstream.engine.call import Message

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")


def written(folder: Path, content: str | bytes) -> Path:
    file = folder / "prompts"
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return file


def texts(chosen: inputs.PromptSource, count: int) -> list[Prompt]:
    return list(islice(chosen.prompts(Random(1), Random(2)), count))


def test_a_file_may_hold_text_json_and_conversations(tmp_path: Path) -> None:
    talk = '{"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}], "id": 7}'
    lines = "\ufeffplain text\r\n\n" + '"a \\n string"\n{"prompt": "in an object", "id": 1}\n' + talk
    assert read_prompts(written(tmp_path, lines)) == [
        "plain text",
        "a \n string",
        "in an object",
        (Message("system", "be kind"), Message("user", "hi")),
    ]


def test_a_json_list_has_a_prompt_an_element_and_a_bracket_alone_is_text(tmp_path: Path) -> None:
    assert read_prompts(written(tmp_path, '[\n "one",\n {"prompt": "two"}\n]\n')) == ["one", "two"]
    assert read_prompts(written(tmp_path, "[INST] one\n[INST] two\n")) == ["[INST] one", "[INST] two"]


def test_what_ends_a_line_elsewhere_ends_none_inside_a_json_string(tmp_path: Path) -> None:
    assert read_prompts(written(tmp_path, '"one\u2028more\u0085"\n"two"\n')) == ["one\u2028more\u0085", "two"]


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "expected at least 1 prompt, got none: write one a line"),
    "blank lines": (" \n\t\n", "expected at least 1 prompt, got none"),
    "an empty list": ("[]", "expected at least 1 prompt, got none"),
    "a binary file": (b"\x00\x01\x02 text", "expected text, a prompt a line, got a binary file"),
    "another encoding": (b"caf\xe9\n", "expected UTF-8, got byte 0xe9 at offset 3"),
    "torn JSON": ('fine\n{"prompt": ', "line 2: expected a JSON string, or an object with `prompt`"),
    "an object without a prompt": ('{"text": "x"}', "Object has neither `prompt` nor `messages`"),
    "a number as a prompt": ('{"prompt": 3}', "Expected `str | null`, got `int` - at `$.prompt`"),
    "an empty prompt": ('{"prompt": " "}', "line 1: expected a JSON string, or an object"),
    "an element that is no prompt": ('["a", 3]', "element 2: expected a JSON string, or an object"),
    "no message": ('{"messages": []}', "of length >= 1 - at `$.messages`"),
    "a message without a role": (
        '{"messages": [{"content": "x"}]}',
        "missing required field `role` - at `$.messages[0]`",
    ),
    "parts": ('{"messages": [{"role": "user", "content": []}]}', "line 1: expected a JSON string, or an object"),
    "half of a pair": ('"\\ud800"', "line 1: expected a JSON string, or an object"),
    "half of a pair in a message": (
        '{"messages": [{"role": "user", "content": "\\udfff"}]}',
        "line 1: expected a JSON string, or an object",
    ),
    "deep JSON": ('{"prompt": ' + "[" * 100_000, "line 1: expected a JSON string, or an object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_without_prompts_is_refused_by_its_line(case: str, tmp_path: Path) -> None:
    content, said = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        read_prompts(written(tmp_path, content))
    assert said in str(refused.value) and str(refused.value).startswith("--prompts: ")


def test_a_table_is_no_file_of_prompts(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("question,answer\nWhat is 2 + 2?,4\n")
    with pytest.raises(UsageError, match=r"rows\.csv: expected a prompt a line, as text or JSON, got a table"):
        read_prompts(path)


def test_what_is_no_file_or_too_large_is_refused_unread(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "got a folder"), (tmp_path / "none", "No such file"), (Path("/dev/zero"), "device")):
        with pytest.raises(UsageError, match=said):
            read_prompts(path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(UsageError, match="expected a file of at most 64 MiB, got a larger one"):
        read_prompts(tmp_path / "large")


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.binary(max_size=30)), max_size=6))
def test_no_content_makes_a_file_of_prompts_end_in_anything_but_prompts_or_a_line(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str | bytes]
) -> None:
    data = b"\n".join(each if isinstance(each, bytes) else each.encode() for each in pieces)
    file = written(tmp_path_factory.mktemp("fuzz"), data)
    try:
        found = read_prompts(file)
    except UsageError as refused:
        assert "\n" not in str(refused).rstrip()
        return
    assert found and all(isinstance(each, str | tuple) and each for each in found)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["prompt", "messages", "role", "content", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=4))
def test_any_json_is_prompts_or_refused_by_its_line(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    file = written(tmp_path_factory.mktemp("fuzz"), "\n".join(map(json.dumps, values)))
    try:
        found = read_prompts(file)
    except UsageError as refused:
        assert str(refused).startswith("--prompts: ")
        return
    # Whatever is read can be sent.
    made = inputs.of_file(file, is_exact=False).prompts(Random(1), Random(2))
    assert len(list(islice(made, 5))) == 5 and found


def test_the_grid_of_the_sample_is_asked_as_a_run_asks_it_in_a_part_that_holds_all_kinds() -> None:
    every = {item.prompt: item for item in Grid(load(SAMPLE))}
    chosen = inputs.of_dataset("millstone", is_exact=True)
    found = [every[str(prompt)] for prompt in texts(chosen, GRID_MOST)]
    assert "5,000 of the 11,880 prompts of MillStone's grid" in chosen.told
    assert len({item.issue for item in found}) == 12 and len({item.config for item in found}) == 11
    assert {item.template for item in found} == {1, 2, 3, 4, 5, 6}


def test_a_data_sets_prompts_come_behind_other_letters_unless_asked_to_the_letter() -> None:
    exact = texts(inputs.of_dataset("chameleon", is_exact=True), 360)
    behind = texts(inputs.of_dataset("chameleon", is_exact=False), 720)
    assert len(set(map(str, exact))) == 360
    assert len({str(prompt)[:25] for prompt in behind}) == 720
    assert {str(prompt)[26:] for prompt in behind} == set(map(str, exact))


def test_a_path_is_the_data_of_whichever_benchmark_it_holds(tmp_path: Path) -> None:
    talk = {"topic": "tea", "domain": "food", "questions": ["Is tea good?", "Why?"]}
    file = tmp_path / "talks.jsonl"
    file.write_text(json.dumps(talk) + "\n")
    assert {str(each) for each in texts(inputs.of_dataset(str(file), is_exact=True), 2)} == set(talk["questions"])
    issues = tmp_path / "issues"
    issues.mkdir()
    for issue in sorted(SAMPLE.glob("*.json"))[:1]:
        (issues / issue.name).write_bytes(issue.read_bytes())
    assert "990 prompts of MillStone's grid" in inputs.of_dataset(str(issues), is_exact=True).told


def test_prompts_of_a_trace_are_as_long_as_it_tells_in_its_order() -> None:
    source = inputs.source_of(inputs.of_trace((100, 9, 4_000)), CallParameters(max_tokens=5), 0, (7, 1, 9))
    made = list(source("sim/steady", 0))
    assert [(len(str(call.input)), call.max_tokens) for call in made] == [(400, 7), (36, 1), (16_000, 9)]
