"""One issue checked: every kind of trouble is found, named with its place, and rightly called fatal or not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.millstone.checks import CheckRules, Finding, check
from millstream.bench.millstone.dataset_file import contents_of_file, encode
from millstream.fixtures import full_size

WRITTEN = "a model writes them with `millstream data millstone … --rephrase MODEL --out FILE`"
Content = dict[str, Any]
STRICT = CheckRules()
NAME, GOOD = next(full_size.issues())


def found(content: object, rules: CheckRules = STRICT, issue_id: str = "ferries") -> list[tuple[str, str, str]]:
    """Each finding as (what, detail, how bad)."""
    return [(one.what, one.detail, _weight(one)) for one in check(issue_id, content, rules).findings]


def _weight(finding: Finding) -> str:
    assert finding.is_fault or not finding.is_fatal
    return "fatal" if finding.is_fatal else "fault" if finding.is_fault else "remark"


def good(**changes: object) -> Content:
    return {**copy.deepcopy(GOOD), **changes}


def test_a_good_issue_has_no_finding_and_keeps_every_text() -> None:
    checked = check(NAME, GOOD, STRICT)
    assert checked.findings == ()
    assert checked.draft is not None and checked.draft.content() == GOOD


BROKEN: dict[str, tuple[object, list[tuple[str, str]]]] = {
    "a list": ([GOOD], [("not an object", "expected an object, got a list")]),
    "null": (None, [("not an object", "expected an object, got null")]),
    "no question": (
        {name: value for name, value in GOOD.items() if name != "question"},
        [("missing field", "question: expected it, got nothing")],
    ),
    "a number for a question": (good(question=7), [("unusable field", "question: expected a text, got a number")]),
    "an empty question": (good(question=" \n"), [("unusable field", "question: expected a text with words")]),
    "half a character": (
        good(question="\ud800"),
        [("broken text", "question: expected text that UTF-8 can hold, got half of a surrogate pair")],
    ),
    "an object of arguments": (good(pros={}), [("unusable field", "pros: expected a list, got an object")]),
    "a side without arguments": (good(cons=[]), [("unusable field", "cons: expected a list of length >= 1")]),
    "an empty argument": (
        good(cons=["Good.", "\t"]),
        [("unusable field", "cons[1]: expected a text with words")],
    ),
    "arguments of other types": (
        good(pros=["Good.", None, 3]),
        [("unusable field", "pros[1]: expected a text, got `null`")],
    ),
    "a list of sources": (good(sources=["x"]), [("unusable field", "sources: expected an object, got a list")]),
    "a source that is no text": (
        good(sources={"[1]": 1}),
        [("unusable field", "sources[...]: expected a text, got a number")],
    ),
    "no paraphrases": (
        good(paraphrases=[]),
        [
            (
                "paraphrases",
                f"paraphrases: expected 6, got none: {WRITTEN}",
            )
        ],
    ),
    "five paraphrases": (
        good(paraphrases=[{}] * 5),
        [
            (
                "paraphrases",
                f"paraphrases: expected 6, got 5: {WRITTEN}",
            )
        ],
    ),
    "text for paraphrases": (
        good(paraphrases="six"),
        [("unusable field", "paraphrases: expected a list, got a text")],
    ),
    "a paraphrase that is no object": (
        good(paraphrases=["text"] * 6),
        [("unusable field", "paraphrases[0]: expected an object, got a text")],
    ),
    "a paraphrase without a label": (
        good(paraphrases=[{"question": "Q"}] * 6),
        [("unusable field", "paraphrases[0]: object missing required field `orientation`")],
    ),
    "a paraphrase without words": (
        good(paraphrases=[{"question": "", "orientation": "pro"}] * 6),
        [("unusable field", "paraphrases[0].question: expected a text with words")],
    ),
    "a label of another name": (
        good(paraphrases=[{"question": "Q", "orientation": "Pro"}] * 6),
        [("unusable field", "paraphrases[0].orientation: invalid enum value 'Pro'")],
    ),
    "a label that is no text": (
        good(paraphrases=[{"question": "Q", "orientation": True}] * 6),
        [("unusable field", "paraphrases[0].orientation: expected a text, got `bool`")],
    ),
    "a number for a wording": (
        good(paraphrases=[{"question": 4, "orientation": "con"}] * 6),
        [("unusable field", "paraphrases[0].question: expected a text, got a number")],
    ),
    "several fields at once": (
        {"question": 1, "pros": [], "sources": {}},
        [
            ("unusable field", "question: expected a text, got a number"),
            ("unusable field", "pros: expected a list of length >= 1"),
            ("missing field", "cons: expected it, got nothing"),
            ("missing field", "paraphrases: expected it, got nothing"),
        ],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_prevents_use_is_named_with_its_place_and_nothing_else_is_said(case: str) -> None:
    content, expected = BROKEN[case]
    assert found(content) == [(*one, "fatal") for one in expected]
    assert check("ferries", content, STRICT).draft is None


@pytest.mark.parametrize("issue_id", ["two words", "a/b", "a,b", "", "half\udcff"])
def test_an_id_that_records_and_options_cannot_carry_is_fatal(issue_id: str) -> None:
    ((what, detail, weight),) = found(GOOD, issue_id=issue_id)
    assert (what, weight) == ("unusable id", "fatal")
    assert detail.startswith("issue id: expected no space, slash or comma, got ")
    detail.encode()


def test_a_citation_without_a_source_is_a_fault_and_a_source_without_a_citation_a_remark() -> None:
    content = good(
        pros=["One [1] [7] [7].", "Two [8]."], cons=["Three [2]."], sources={"[1]": "a", "[2]": "b", "[9]": "", "x": ""}
    )
    assert found(content) == [
        ("dangling citation", "pros[0]: [7] points to no source", "fault"),
        ("dangling citation", "pros[1]: [8] points to no source", "fault"),
        ("uncited source", "[9], x: no argument cites it", "remark"),
    ]
    draft = check("ferries", content, STRICT).draft
    assert draft is not None and draft.content() == content


def test_of_many_citations_the_first_few_are_named() -> None:
    text = "".join(f"[{number}]" for number in range(1, 41))
    (finding, _) = found(good(pros=["Good [1]."], cons=[text], sources={"[1]": "", "[50]": ""}))
    assert finding == (
        "dangling citation",
        "cons[0]: [2], [3], [4], [5], [6], [7] and 33 more point to no source",
        "fault",
    )


def test_an_argument_that_stands_twice_is_a_fault_on_either_side() -> None:
    content = good(pros=["Same  words.", "Others."], cons=["same words.", "Others.\n"], sources={})
    assert found(content) == [
        ("repeated argument", "cons[0] says the same as pros[0]", "fault"),
        ("repeated argument", "cons[1] says the same as pros[1]", "fault"),
    ]


def mislabelled() -> Content:
    """The fourth says A in favor and is labelled con; the fifth names the con position first and is labelled pro."""
    content = good()
    assert [one["orientation"] for one in content["paraphrases"]] == ["pro", "pro", "pro", "pro", "con", "con"]
    content["paraphrases"][3]["orientation"] = "con"
    content["paraphrases"][4]["orientation"] = "pro"
    return content


def test_a_label_that_its_wording_contradicts_is_a_fault_and_stays_as_it_is() -> None:
    content = mislabelled()
    assert found(content) == [
        ("orientation", "paraphrases[3]: labelled con, the wording says pro", "fault"),
        ("orientation", "paraphrases[4]: labelled pro, the wording says con", "fault"),
    ]
    draft = check("ferries", content, STRICT).draft
    assert draft is not None and draft.content() == content


def test_a_label_is_corrected_when_that_was_asked_for() -> None:
    rules = CheckRules(fix_orientation=True)
    assert found(mislabelled(), rules) == [
        ("orientation", "paraphrases[3]: labelled con, the wording says pro: corrected", "remark"),
        ("orientation", "paraphrases[4]: labelled pro, the wording says con: corrected", "remark"),
    ]
    draft = check("ferries", mislabelled(), rules).draft
    assert draft is not None and draft.content() == GOOD
    assert found(draft.content()) == []


def test_a_label_whose_wording_tells_nothing_is_a_remark_and_is_never_corrected() -> None:
    content = good()
    for at, orientation in ((1, "con"), (4, "pro")):
        content["paraphrases"][at] = {"question": f"Wording {at}: A or B?", "orientation": orientation}
    told = [("orientation", "paraphrases[1, 4]: can't be told from the wording", "remark")]
    assert found(content) == found(content, CheckRules(fix_orientation=True)) == told
    draft = check("ferries", content, CheckRules(fix_orientation=True)).draft
    assert draft is not None and draft.content() == content


@pytest.mark.parametrize("paraphrases", [[], [{}] * 5, "six", None])
def test_where_paraphrases_will_be_written_their_lack_is_no_fault(paraphrases: object) -> None:
    checked = check("ferries", good(paraphrases=paraphrases), CheckRules(needs_paraphrases=False))
    assert checked.draft is not None and checked.draft.paraphrases == ()
    assert all(not finding.is_fault for finding in checked.findings)
    assert (checked.findings == ()) == (paraphrases == [])


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800")
GARBAGE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)
FIELDS = ["question", "pros", "cons", "sources", "paraphrases"]


def _spoilt(path: tuple[object, ...], value: object) -> object:
    """The good issue with something else at one place."""
    content = copy.deepcopy(GOOD)
    target: Any = content
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return content


PATHS = st.one_of(
    st.tuples(st.sampled_from(FIELDS)),
    st.tuples(st.sampled_from(["pros", "cons"]), st.just(0)),
    st.tuples(st.just("sources"), st.text(max_size=3) | st.just("[1]")),
    st.tuples(st.just("paraphrases"), st.integers(0, 5)),
    st.tuples(st.just("paraphrases"), st.integers(0, 5), st.sampled_from(["question", "orientation"])),
)
ISSUES = GARBAGE | st.dictionaries(st.sampled_from(FIELDS), GARBAGE) | st.builds(_spoilt, PATHS, GARBAGE)


@given(st.text(max_size=6) | st.just("ferries"), ISSUES, st.booleans(), st.booleans())
def test_no_json_raises_and_what_is_called_usable_can_be_written_and_read(
    issue_id: str, content: object, fix: bool, needs: bool
) -> None:
    checked = check(issue_id, content, CheckRules(fix, needs))
    for finding in checked.findings:
        f"{finding.what} {finding.detail}".encode()
    assert (checked.draft is None) == any(finding.is_fatal for finding in checked.findings)
    if checked.draft is not None:
        contents = {issue_id: checked.draft.content()}
        written = contents_of_file(json.loads(encode(contents)), "written")
        assert check(issue_id, written[issue_id], CheckRules(needs_paraphrases=needs)).draft == checked.draft
