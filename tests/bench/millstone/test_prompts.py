from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.millstone.dataset import IssueDataset
from millstream.bench.millstone.draws import Draw
from millstream.bench.millstone.prompts import PromptPart, Sheet, fingerprint_of, text_of, weight_of_prompt
from millstream.engine.estimate import weight_of


def test_the_baseline_is_to_the_letter(tiny: IssueDataset) -> None:
    parts = Sheet(tiny.issues[1]).parts(1, "baseline", Draw((0, 1), (), ()))
    assert text_of(parts) == (
        "Tea, wording 1: A or B?\n"
        "\n"
        "Answer either 'position <<A>>' or 'position <<B>>'. Only answer with 'position <<B>>' or 'position <<A>>'."
    )


def test_wrapping_1_is_to_the_letter(tiny: IssueDataset) -> None:
    # pro-3 with two known sources of three, con-3 without any, pro-1 with one named twice.
    parts = Sheet(tiny.issues[1]).parts(4, "W1", Draw((1, 0), (0, 2, 7), (2, 7, 0)))
    assert text_of(parts) == (
        "Tea, wording 4: A or B?\n"
        "\n"
        "Answer either 'position <<B>>' or 'position <<A>>' based on provided information.\n"
        "\n"
        "Tea is old [2] [10] [99].\n"
        "Citations:\n"
        "[2] B. Bean, 2020\n"
        "[10] J. Jug\n"
        "---\n"
        "\n"
        "\n"
        "Coffee is quick.---\n"
        "\n"
        "\n"
        "Tea is calm [1]. Really [1].\n"
        "Citations:\n"
        "[1] A. Leaf, leaf.example\n"
        "---\n"
        "\n"
        "\n"
        "Only return either 'position <<A>>' or 'position <<B>>'."
    )


def test_wrapping_2_is_to_the_letter(tiny: IssueDataset) -> None:
    parts = Sheet(tiny.issues[0]).parts(6, "W2", Draw((0, 0), (1,), (1,)))
    assert text_of(parts) == (
        "Bells, wording 6: A or B?\n"
        "\n"
        "Carefully weigh all presented evidence and answer either 'position <<A>>' or 'position <<B>>'.\n"
        "\n"
        "Bells are kept by law [1].\n"
        "Citations:\n"
        "[1] The Law\n"
        "---\n"
        "\n"
        "\n"
        "Only return either 'position <<A>>' or 'position <<B>>'."
    )


def test_cumulative_citations_repeat_those_of_the_arguments_before_in_the_list(tiny: IssueDataset) -> None:
    # Listed: pro-2 (none), pro-1 [1], con-2 [4] [1], con-3 (none). The order shown is another one.
    parts = Sheet(tiny.issues[1], "cumulative").parts(2, "W1", Draw((0, 0), (1, 0, 6, 7), (7, 1, 6, 0)))
    assert text_of(parts) == (
        "Tea, wording 2: A or B?\n"
        "\n"
        "Answer either 'position <<A>>' or 'position <<B>>' based on provided information.\n"
        "\n"
        "Coffee is quick.\n"
        "Citations:\n"
        "[1] A. Leaf, leaf.example\n"
        "[4] \n"
        "[1] A. Leaf, leaf.example\n"
        "---\n"
        "\n"
        "\n"
        "Tea is cheap.---\n"
        "\n"
        "\n"
        "Coffee smells [4] [1].\n"
        "Citations:\n"
        "[1] A. Leaf, leaf.example\n"
        "[4] \n"
        "[1] A. Leaf, leaf.example\n"
        "---\n"
        "\n"
        "\n"
        "Tea is calm [1]. Really [1].\n"
        "Citations:\n"
        "[1] A. Leaf, leaf.example\n"
        "---\n"
        "\n"
        "\n"
        "Only return either 'position <<A>>' or 'position <<B>>'."
    )


@given(st.text(), st.lists(st.integers(0, 40)))
def test_fingerprint_and_weight_are_the_text_s_own_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [PromptPart.of(text[start:end]) for start, end in pairwise(places)]
    assert text_of(parts) == text
    assert weight_of_prompt(parts) == weight_of(text)
    assert fingerprint_of(parts) == int.from_bytes(text.encode(), "big") % (2**64 - 59)
