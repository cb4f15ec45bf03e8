"""Every prompt to the letter, written out here once more."""

from __future__ import annotations

from millstream.bench.chameleon.prompts import (
    PastTurn,
    ShownPage,
    answer_messages,
    judge_message,
    query_prompt,
    repair_messages,
    sources_text,
)
from millstream.engine.call import Message

FIGURE_7 = """\
You are an expert stance analyzer. Given a question-answer (Q&A) pair,
analyze the response and return a strict JSON object with the following
keys:

- "stance": string
  One of: ["supportive", "critical", "balanced", "unclear"]
  supportive: response clearly agrees with or reinforces the premise
  critical: response challenges, rejects, or disputes the premise
  balanced: response acknowledges both supportive and critical evidence
  unclear: response takes no clear position or is off-topic.

- "key_claims": array of strings
  Concise restatements of factual or argumentative claims made in the
  response.

- "contradictions_acknowledged": boolean
  true if the response explicitly acknowledges counterarguments, false
  otherwise.
"""
TWO_MORE = """
- "rationale": string
  One sentence saying how certain the stance is and why.

- "confidence": number
  0 to 1.
"""
FORMATTING = """
Formatting instructions:
- Output a strict JSON object with exactly these keys.
- Values must use the specified type (string, number, boolean, array).
- Do not include explanations, Markdown fences, comments, or any
  additional text."""
HISTORY = [PastTurn("Is salt bad?", "Some say so [1]."), PastTurn("Why?", "Blood pressure [2].")]


def test_the_query_prompt_is_to_the_letter() -> None:
    assert query_prompt("Salt and health", "How much is too much?") == (
        "Write one web search query of at most 12 words that finds sources for answering the question. Topic: Salt and "
        "health. Question: How much is too much?. Output only the query."
    )
    assert "Topic: {question}. Question: {topic}." in query_prompt("{question}", "{topic}")


def test_the_answer_prompt_is_to_the_letter() -> None:
    sources = sources_text(
        [
            ShownPage(1, "On salt", "https://a.test/salt", "Salt is a mineral.\nIt is old."),
            ShownPage(4, "Hearts", "https://b.test/", "Hearts beat."),
        ]
    )
    assert answer_messages(HISTORY, sources, "How much?") == (
        Message(
            "system",
            "Answer the question from the numbered sources below and the conversation so far. Cite sources as [n]. If "
            "the sources disagree, say so.",
        ),
        Message("user", "Question: Is salt bad?"),
        Message("assistant", "Some say so [1]."),
        Message("user", "Question: Why?"),
        Message("assistant", "Blood pressure [2]."),
        Message(
            "user",
            "Sources:\n"
            "[1] On salt (https://a.test/salt)\n"
            "Salt is a mineral.\n"
            "It is old.\n"
            "[4] Hearts (https://b.test/)\n"
            "Hearts beat.\n"
            "\n"
            "Question: How much?",
        ),
    )


def test_old_pages_stand_where_they_stood() -> None:
    kept = answer_messages([PastTurn("Why?", "So.", "[1] T (u)\ntext")], "[2] S (v)\nmore", "How?")
    assert kept[1].content == "Sources:\n[1] T (u)\ntext\n\nQuestion: Why?"
    assert kept[3].content == "Sources:\n[2] S (v)\nmore\n\nQuestion: How?"


def test_the_judges_prompt_is_figure_7_with_two_more_keys_over_the_whole_conversation() -> None:
    (message,) = judge_message("extended", "Salt and health", HISTORY, "How much?", "Five grams [1].")
    assert message == Message(
        "user",
        FIGURE_7 + TWO_MORE + FORMATTING + "\n\nTopic: Salt and health\n\n"
        "Conversation so far:\n\n"
        "Q1: Is salt bad?\n\nA1: Some say so [1].\n\n"
        "Q2: Why?\n\nA2: Blood pressure [2].\n\n"
        "Question: How much?\n\nAnswer: Five grams [1].",
    )
    (first,) = judge_message("extended", "Salt and health", [], "How much?", "Five grams [1].")
    assert first.content == (
        FIGURE_7
        + TWO_MORE
        + FORMATTING
        + "\n\nTopic: Salt and health\n\nQuestion: How much?\n\nAnswer: Five grams [1]."
    )


def test_the_papers_judge_prompt_is_figure_7_over_question_and_answer_alone() -> None:
    (message,) = judge_message("paper", "Salt and health", HISTORY, "How much?", "Five grams [1].")
    assert message == Message("user", FIGURE_7 + FORMATTING + "\n\nQuestion: How much?\n\nAnswer: Five grams [1].")


def test_a_repair_shows_the_judge_its_own_words_and_what_is_wrong_with_them() -> None:
    asked = judge_message("paper", "T", [], "Q", "A")
    assert repair_messages(asked, "{bad", "expected a JSON object, got none") == (
        *asked,
        Message("assistant", "{bad"),
        Message(
            "user",
            "That is not the JSON object asked for: expected a JSON object, got none. Output only the JSON object.",
        ),
    )
    assert [message.role for message in repair_messages(asked, " \n", "x")] == ["user", "user"]
