"""Fits history and pages into a prompt: the oldest history is cut first, then pages from the last.

Tokens are estimated from characters and their script as in the engine, but by a fixed ratio, so that a prompt is the
same on every machine. Owns the order of cutting; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...engine.attempts.estimate import TOKENS_PER_CHAR, surplus_of, weight_of
from ...engine.call import Message
from .prompts import JudgePrompt, PastTurn, ShownPage, answer_messages, judge_message, sources_text

TITLE_MAX = 300


class PromptCuts(Struct, frozen=True, omit_defaults=True):
    """The parts cut from a turn's prompts. `pages` are the numbers of shortened pages, `dropped` of omitted ones;
    `history` and `judge_history` are how many of the oldest turns the answer's and the judge's prompt omit."""

    pages: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    history: int = 0
    judge_history: int = 0


class AnswerPrompt(Struct, frozen=True):
    """An answer's prompt: its `messages`, the pages shown in it (`sources`), and how many earlier turns are in it
    (`history`)."""

    messages: tuple[Message, ...]
    sources: tuple[ShownPage, ...]
    history: int


def chars_for(tokens: int) -> int:
    """Returns how many characters of a light script (such as Latin) fit in `tokens`; a character of a heavy one (such
    as Chinese) counts as several of these."""
    return int(tokens / TOKENS_PER_CHAR)


def page_text(text: str, tokens: int) -> tuple[str, bool]:
    """Returns as much of a page's text as fits into `tokens`, and whether it was shortened."""
    text = text.strip()
    most = chars_for(tokens)
    kept = text[:most]
    if surplus_of(kept):
        kept = _first(kept, most)
    return (text, False) if len(kept) == len(text) else (kept.rstrip(), True)


def _first(text: str, most: int) -> str:
    """Returns the longest beginning of a text that weighs at most `most`; a character of a heavy script weighs more
    than 1."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weight_of(text[:middle]) <= most else (low, middle - 1)
    return text[:low]


def title_of(title: str, otherwise: str) -> str:
    """Returns a title on one line of at most 300 characters; `otherwise` if it is empty."""
    return (" ".join(title.split()) or " ".join(otherwise.split()))[:TITLE_MAX]


def fit_answer(history: Sequence[PastTurn], sources: Sequence[ShownPage], question: str, tokens: int) -> AnswerPrompt:
    """Returns the prompt for an answer: omits the oldest history, then the last pages, until it fits into `tokens` or
    none are left."""
    messages = answer_messages(history, sources_text(sources), question)
    sizes = [weight_of(message.words) for message in messages]
    excess = sum(sizes) - chars_for(tokens)
    # Each turn has two messages, after the system's.
    forgotten = 0
    while excess > 0 and forgotten < len(history):
        excess -= sizes[1 + 2 * forgotten] + sizes[2 + 2 * forgotten]
        forgotten += 1
    listed = list(sources)
    while excess > 0 and listed:
        before = weight_of(sources_text(listed[-2:]))
        excess -= before - weight_of(sources_text(listed[-2:-1]))
        listed.pop()
    kept = history[forgotten:]
    return AnswerPrompt(answer_messages(kept, sources_text(listed), question), tuple(listed), len(kept))


def fit_judge(
    prompt: JudgePrompt, topic: str, history: Sequence[PastTurn], question: str, answer: str, tokens: int
) -> tuple[tuple[Message, ...], int]:
    """Returns the judge's messages, fitted into `tokens`, and how many turns of history they contain."""
    most = chars_for(tokens)
    kept = list(history) if prompt == "extended" else []
    # Omitted turns change the labels of the others, but labels cost nothing beyond their characters.
    messages = judge_message(prompt, topic, kept, question, answer)
    surplus = surplus_of(messages[0].words)
    while kept and len(messages[0].words) + surplus > most:
        gone = kept.pop(0)
        surplus -= surplus_of(gone.question) + surplus_of(gone.answer)
        messages = judge_message(prompt, topic, kept, question, answer)
    return messages, len(kept)
