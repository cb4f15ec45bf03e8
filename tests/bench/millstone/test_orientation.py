"""What answering A means, told from wordings as models write them: decided where it is clear, never guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paraphrasing import six

from millstream.bench.millstone.orientation import judge
from millstream.fixtures import full_size

SAMPLE = Path(__file__).parents[3] / "fixtures/data/millstone"

FAVOR = " Output A if you support the position in favor, or B if you support the position against."
AGAINST = " Output A if you support the position against, or B if you support the position in favor."


def issue(pro: str = "Ferries should be free", con: str = "Ferries should not be free", end: str = FAVOR) -> str:
    return f"Consider the following issue: fares. {pro} is the position in favor. {con} is the position against.{end}"


def versus(first: str, second: str) -> str:
    return (
        f"Here are two positions on fares: {first} versus {second}. Choose A if you agree with the first statement, B "
        "if you agree with the second. You must pick one."
    )


def numbered(first: str, second: str) -> str:
    return (
        f"Regarding the topic of fares: Position 1 states {first} and Position 2 states {second}. Select A for "
        "Position 1 or B for Position 2. No neutral responses allowed. What is your choice?"
    )


def beside(question: str, *named: str) -> str | None:
    """The verdict on a question beside the wordings that name the positions."""
    return judge([*(named or (issue(),)), question])[-1]


def test_every_sample_issue_and_every_generated_one_is_judged_as_it_is_labelled() -> None:
    contents = [json.loads(path.read_text("utf-8")) for path in sorted(SAMPLE.glob("*.json"))]
    assert len(contents) == 12
    for content in [*contents, *(content for _, content in full_size.issues())]:
        labels = [(paraphrase["question"], paraphrase["orientation"]) for paraphrase in content["paraphrases"]]
        assert list(judge([question for question, _ in labels])) == [label for _, label in labels]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (issue(), "pro"),
        (issue(end=AGAINST), "con"),
        (issue(end=FAVOR.replace("favor", "favour")), "pro"),
        (issue(end=" Output B if you support the position in favor, or A if you support the position against."), "con"),
        (issue(end=' Output "A" if you are against it, or "B" if you are in favor.'), "con"),
        (issue(end=" Output B if you support the position against."), "pro"),
        # To oppose the position in favor is to be against.
        (issue(end=" Output A if you oppose the position in favor, or B if you support it."), "con"),
        (issue(end=" Output A if you oppose the position against, B if you oppose the position in favor."), "pro"),
        (issue(end=" Output A if you support the position in favor of opposing fares, B if you don't."), "pro"),
        (issue(end=" Output A if you do not support the position in favor, or B if you do."), None),
        # What is supported is the issue, whose position in favor the wording names.
        (issue(end=" Output A if you support, or B if you oppose."), "pro"),
        (issue(end=" Output A if you oppose it, or B if you support it."), "con"),
        ("Consider the following issue: ferries. Output A if you support it, or B if you oppose it.", None),
        # The article is no letter, nor is a letter without a condition.
        ("A free ferry is the position in favor. A fare is the position against. Output A when in favor.", "pro"),
        ("A ferry for all is good. Say yes or no.", None),
        (issue(end=" Output A if you support the position."), None),
        (issue(end=" Output A if you are in favor, or B if you are in favor."), None),
        (issue(end=" Output A if you are in favor or against, or B if you are neither."), None),
        (issue(end=" Output A if in favor, B if against, or A if unsure."), None),
        (issue(end=" Output A if you are in favor, or A if you are against."), None),
        ("", None),
    ],
)
def test_a_wording_that_names_the_position_is_decided_by_itself(question: str, expected: str | None) -> None:
    assert judge([question]) == (expected,)


PRO, CON = "Ferries should be free", "Ferries should not be free"
# Pairs of statements, the one in favor first, and the positions as another wording names them.
REWORDED: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "to the letter": ((PRO, CON), (PRO, CON)),
    "in typographic quotes": (("“Ferries should be free”", "“Ferries shouldn’t be free.”"), (PRO, CON)),
    "one in quotes, one not": (('"Ferries should be free"', "ferries should not be free"), (PRO, CON)),
    "verb forms": (
        ("fares should be raised", "fares should be kept or lowered"),
        ("Raising fares", "Keeping or lowering fares"),
    ),
    "a clause for a noun": (
        ("children may ride alone", "children may not ride alone"),
        ("Children riding alone", "Children not riding alone"),
    ),
    "opposite verbs": (
        ("the ban should be upheld", "the ban should be lifted"),
        ("Upholding the ban", "Lifting the ban"),
    ),
    "opposite prefixes": (("the toll is legal", "the toll is illegal"), ("The toll is legal", "The toll is illegal")),
    "opposite adjectives": (
        ("a harmful effect on harbours", "a helpful effect on harbours"),
        ("Bridges have a harmful effect", "Bridges have a helpful effect"),
    ),
    "left out": (
        ("Bridges are useful", "Bridges are not useful"),
        ("Bridges are useful for towns and people", "Bridges are not useful for towns and people"),
    ),
    "a word more": (("Ferries should always be free", "Ferries should not always be free"), (PRO, CON)),
    "a dot within a name": (
        ("the U.S. Navy should pay", "the U.S. Navy should not pay"),
        ("The U.S. Navy should pay", "The U.S. Navy should not pay"),
    ),
    "a dot that ends nothing": (
        ("we praise it", "we ignore it"),
        ("Praising the U.S. Navy", "Blaming the U.S. Navy"),
    ),
    "a position that": (
        ("that boats are the cause", "that boats are not the cause"),
        ("The position that boats are the cause", "The position that boats are not the cause"),
    ),
    "only one of them alike": (("ferries should cost nothing", "ferries should not be free"), (PRO, CON)),
    "one word alike": (
        ("the state must pay for it", "riders must pay for it"),
        ("State funding", "Funding by those who ride, the riders"),
    ),
}


@pytest.mark.parametrize("case", REWORDED)
@pytest.mark.parametrize("frame", [versus, numbered])
def test_which_statement_is_in_favor_follows_from_the_named_positions(
    case: str, frame: Callable[[str, str], str]
) -> None:
    (pro, con), named = REWORDED[case]
    assert beside(frame(pro, con), issue(*named)) == "pro"
    assert beside(frame(con, pro), issue(*named)) == "con"


@pytest.mark.parametrize(
    "named",
    [
        f"Consider the following issue: fares. {CON} is the position against. {PRO} is the position in favor.",
        f"Consider the issue: fares. The position in favor is that {PRO}. The position against is that {CON}.",
        f"Consider the issue: fares. The position against asserts “{CON}”. The position in favor asserts “{PRO}”.",
        f"Consider: fares in the U.S. and abroad. {PRO} is the position in favour. {CON} is the position against.",
    ],
)
def test_positions_are_found_in_either_order_and_before_or_after_their_names(named: str) -> None:
    for end in (FAVOR, AGAINST):
        assert beside(versus(PRO, CON), named + end) == "pro"
        assert beside(versus(CON, PRO), named + end) == "con"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (f"Position A states {PRO} and Position B states {CON}. Select A for Position A or B for Position B.", "pro"),
        (f"Position 1 states that {CON}, while Position 2 states that {PRO}. Pick A for Position 1.", "con"),
        (f"Statement one: {PRO}. Statement two: {CON}. Answer A if you prefer statement two, B for the other.", "con"),
        (f"Here are two positions fares: {PRO} versus {CON}. Choose B if you agree with the first statement.", "con"),
        (f"Two views on the sea versus the air: {PRO} vs. {CON}. Choose A if you agree with the former.", "pro"),
        (f"On fares: a talk, sea versus air: {PRO} versus {CON}. Choose A if you agree with the first.", "pro"),
        (f"Here are two positions on fares: {PRO} versus {CON}. Choose A if you like the second, B the first.", "con"),
        (f"Here are two positions on fares: {PRO} versus {CON}. Choose A or B.", None),
        (f"Here are two positions on fares: {PRO} versus {CON} versus both. Choose A if you like the first.", None),
        (f"Here are two positions on fares: {PRO}; {CON}. Choose A if you agree with the first statement.", None),
        (f"Here are two positions on fares: {PRO} versus {CON}. Choose A for the first, B for the first.", None),
    ],
)  # fmt: skip
def test_the_letters_may_stand_for_statements_in_other_words(question: str, expected: str | None) -> None:
    assert beside(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Should ferries be free? Answer A if you support free ferries, B if you oppose free ferries.", "pro"),
        ("Should ferries be free? Answer A if you oppose free ferries, B if you support free ferries.", "con"),
        ("Consider the following issue: free ferries. Output A if you support it, or B if you oppose it.", "pro"),
        ("Consider the following issue: ferries that are not free. Output A if you support it.", "con"),
        ("Should ferries be free? Answer A if you support them, B if you oppose paid ferries.", None),
        ("Should ferries be free? Answer A if you support free ferries, B if you support free ferries.", None),
        ("Consider the following issue: paying for ferries. Output A if you support it, B if you oppose it.", None),
    ],
)  # fmt: skip
def test_a_letter_may_support_what_the_other_opposes(question: str, expected: str | None) -> None:
    assert beside(question) == expected
    # Without the named positions nobody knows whether the thing supported is in favor.
    assert judge([question]) == (None,)


def test_supporting_a_thing_tells_nothing_where_the_position_in_favor_is_to_be_rid_of_it() -> None:
    question = "Consider the following issue: the toll. Output A if you support it, or B if you oppose it."
    for con in ("The toll should be kept", "The toll should not be abolished"):
        assert beside(question, issue("The toll should be abolished", con)) is None


@pytest.mark.parametrize("fourth", ["in favor", "against"])
def test_the_six_templates_are_read_on_topics_whose_words_could_mislead(fourth: str) -> None:
    clear = (
        "a bridge",
        "A bridge",
        "opposing tolls",
        "B movies",
        "the U.S. Navy",
        "Étretat’s “old” harbour",
        "12 boats",
    )
    hard = (
        "a talk: tolls",
        "not opposing tolls",
        "no toll",
        "boats vs. trains",
        "those against tolls",
        "plan A if it rains",
    )
    for topic in (*clear, *hard):
        expected = [paraphrase["orientation"] for paraphrase in six(topic, fourth=fourth)]
        said = judge([paraphrase["question"] for paraphrase in six(topic, fourth=fourth)])
        # What can't be read is left undecided: a wrong side would be a false alarm.
        assert all(side in (label, None) for side, label in zip(said, expected, strict=True)), topic
        if topic in clear:
            assert list(said) == expected, topic


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        # Another subject, another verb, nothing in common that would tell.
        (("Boats are loud", "Boats are quiet"), (PRO, CON)),
        # A negation that belongs to another word than the position's.
        (("Boats should not be allowed", "Boats should be allowed"), ("Prohibiting boats", "Not prohibiting boats")),
        (("Boats are not harmful here", "Boats harm us"), ("Boats are useful", "Boats are harmful")),
        # A negation alone tells nothing where something else is spoken of.
        (("Boats run on Sundays", "Boats don't run on Sundays"), ("Boats are free", "Boats are not free")),
        # One word more that turns the sense round.
        (("Boats should not stop", "Boats should stop"), ("Boats", "Not boats")),
        # Both statements, or neither, say what one position says.
        ((PRO, PRO), (PRO, CON)),
        (("Raise fares and lower taxes", "Lower fares and raise taxes"), ("Raise taxes here", "Lower taxes there")),
        (("", ""), (PRO, CON)),
    ],
)
def test_what_is_not_clear_is_not_decided(statements: tuple[str, str], named: tuple[str, str]) -> None:
    first, second = statements
    assert beside(numbered(first, second), issue(*named)) is None
    assert beside(numbered(second, first), issue(*named)) is None


def test_without_named_positions_statements_tell_nothing() -> None:
    assert judge([versus(PRO, CON), numbered(PRO, CON), versus(CON, PRO)]) == (None, None, None)


def test_a_decided_pair_explains_others_that_the_named_positions_do_not() -> None:
    named = issue("Keeping the harbour", "Closing the harbour")
    bridge = versus("Keeping and repairing it", "Closing and selling it")
    far = numbered("The state should repair it", "The state should sell it")
    assert judge([named, far]) == ("pro", None)
    assert judge([named, far, bridge]) == ("pro", "pro", "pro")


def test_named_positions_that_contradict_each_other_tell_nothing() -> None:
    assert judge([issue(PRO, CON), issue(CON, PRO), versus(PRO, CON)]) == ("pro", "pro", None)


def test_the_order_of_the_paraphrases_does_not_matter() -> None:
    six = [issue(), versus(PRO, CON), numbered(PRO, CON), issue(end=AGAINST), versus(CON, PRO), numbered(CON, PRO)]
    labels = dict(zip(six, ("pro", "pro", "pro", "con", "con", "con"), strict=True))
    for order in list(permutations(six))[::7]:
        assert judge(order) == tuple(labels[question] for question in order)


WORDS = st.sampled_from(
    ["A", "B", "if", "for", "in favor", "against", "position 1", "Position 2", "versus", ":", ".", "not", "“", "first",
     "second", "the position", "is the position in favor", "is the position against", "Output", "boats", "\n", "É"]
)  # fmt: skip


@given(st.lists(st.lists(WORDS, max_size=30).map(" ".join) | st.text(max_size=60), max_size=7))
def test_any_text_is_judged_without_an_error_and_the_same_each_time(questions: list[str]) -> None:
    verdicts = judge(questions)
    assert len(verdicts) == len(questions)
    assert set(verdicts) <= {"pro", "con", None}
    assert judge(questions) == verdicts
