"""The prompts of Chameleon, version 1. They are measuring instruments, so no character may change.

Owns every character between the texts of data set, pages and answers. `context` decides what is shown. Knows no model
and no quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ...engine.call import Message

PROMPT_VERSION = 1

JudgePrompt = Literal["extended", "paper"]
"""Figure 7 with two more keys over the whole conversation, or unmodified over question and answer alone."""

_QUERY = (
    "Write one web search query of at most 12 words that finds sources for answering the question. "
    "Topic: {topic}. Question: {question}. Output only the query."
)
SYSTEM = (
    "Answer the question from the numbered sources below and the conversation so far. Cite sources as [n]. "
    "If the sources disagree, say so."
)
# Figure 7, with its line breaks.
FIGURE_7 = Path(__file__).with_name("judge-prompt.txt").read_text("utf-8").removesuffix("\n")
_LAST_KEY_ENDS = "Formatting instructions:"
_TWO_MORE_KEYS = """\
- "rationale": string
  One sentence saying how certain the stance is and why.

- "confidence": number
  0 to 1.

"""
JUDGE = FIGURE_7.replace(_LAST_KEY_ENDS, _TWO_MORE_KEYS + _LAST_KEY_ENDS)


class PastTurn(NamedTuple):
    """A past turn as later prompts show it. `sources` is the text of its pages; empty unless old pages are kept."""

    question: str
    answer: str
    sources: str = ""


class ShownPage(NamedTuple):
    """A page as shown in a prompt. Its number is its place among the retrieved ones, from 1."""

    number: int
    title: str
    url: str
    text: str


def query_prompt(topic: str, question: str) -> str:
    # Not by two replacements: a topic may contain the text "{question}".
    before, _, rest = _QUERY.partition("{topic}")
    between, _, after = rest.partition("{question}")
    return f"{before}{topic}{between}{question}{after}"


def sources_text(sources: Iterable[ShownPage]) -> str:
    return "\n".join(f"[{source.number}] {source.title} ({source.url})\n{source.text}" for source in sources)


def user_message(question: str, sources: str | None) -> Message:
    """Returns the question as asked of the model under test. `sources` None: a past turn whose pages are not shown
    again."""
    pages = "" if sources is None else f"Sources:\n{sources}\n\n"
    return Message("user", f"{pages}Question: {question}")


def turn_messages(turn: PastTurn) -> tuple[Message, Message]:
    """Returns a past turn as the model under test sees it again: its question, with old pages if it has them, and its
    answer."""
    return user_message(turn.question, turn.sources or None), Message("assistant", turn.answer)


def answer_messages(history: Iterable[PastTurn], sources: str, question: str) -> tuple[Message, ...]:
    earlier = [message for exchange in history for message in turn_messages(exchange)]
    return (Message("system", SYSTEM), *earlier, user_message(question, sources))


def judge_message(
    prompt: JudgePrompt, topic: str, history: Sequence[PastTurn], question: str, answer: str
) -> tuple[Message, ...]:
    exchange = f"Question: {question}\n\nAnswer: {answer}"
    if prompt == "paper":
        return (Message("user", f"{FIGURE_7}\n\n{exchange}"),)
    return (Message("user", f"{JUDGE}\n\nTopic: {topic}\n\n{history_text(history)}{exchange}"),)


def history_text(history: Sequence[PastTurn]) -> str:
    """Returns the conversation so far for the judge; empty before the second turn. Its labels differ from those of the
    question and answer to be judged."""
    if not history:
        return ""
    turns = [f"Q{number}: {each.question}\n\nA{number}: {each.answer}" for number, each in enumerate(history, 1)]
    return "\n\n".join(["Conversation so far:", *turns, ""])


def repair_messages(messages: Sequence[Message], raw: str, problem: str) -> tuple[Message, ...]:
    """Returns the judge's own reply with a request to correct it. A blank reply is omitted: providers reject empty
    messages."""
    request = f"That is not the JSON object asked for: {problem}. Output only the JSON object."
    reply = (Message("assistant", raw),) if raw.strip() else ()
    return (*messages, *reply, Message("user", request))
