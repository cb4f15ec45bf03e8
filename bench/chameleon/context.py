"""What of history and pages a prompt has room for: the oldest history goes first, then pages from the last.

Tokens are estimated from characters and their script as the engine does, by the ratio that no answer has changed, so
that a prompt is the same on every machine. Owns the order of cutting; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...engine.call import Message
from ...engine.estimate import TOKENS_PER_CHAR, surplus_of, weight_of
from .prompts import Exchange, JudgePrompt, Source, answer_messages, judge_message, sources_text

TITLE_MAX = 300


class Cut(Struct, frozen=True, omit_defaults=True):
    """What a turn's prompts had no room for. `pages` are the numbers of pages cut to their budget, `dropped` of those
    left out; `history` and `judge_history` are how many turns, the oldest, the answer and the judge were not shown."""

    pages: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    history: int = 0
    judge_history: int = 0


class Shown(Struct, frozen=True):
    """An answer prompt and what of its parts it shows."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    history: int


def chars_for(tokens: int) -> int:
    """Of a script of which a token has several; a character of a token weighs as much as these."""
    return int(tokens / TOKENS_PER_CHAR)


def page_text(text: str, tokens: int) -> tuple[str, bool]:
    """A page's text within its budget, and whether anything had to go."""
    text = text.strip()
    most = chars_for(tokens)
    kept = text[:most]
    if surplus_of(kept):
        kept = _first(kept, most)
    return (text, False) if len(kept) == len(text) else (kept.rstrip(), True)


def _first(text: str, most: int) -> str:
    """As many of a text's characters as weigh no more than this."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weight_of(text[:middle]) <= most else (low, middle - 1)
    return text[:low]


def title_of(title: str, otherwise: str) -> str:
    """In one line."""
    return (" ".join(title.split()) or " ".join(otherwise.split()))[:TITLE_MAX]


def fit_answer(history: Sequence[Exchange], sources: Sequence[Source], question: str, tokens: int) -> Shown:
    """The prompt for an answer of at most so many tokens, as far as leaving out history and pages can reach that."""
    messages = answer_messages(history, sources_text(sources), question)
    sizes = [weight_of(message.words) for message in messages]
    excess = sum(sizes) - chars_for(tokens)
    # Two messages a turn, after the system's.
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
    return Shown(answer_messages(kept, sources_text(listed), question), tuple(listed), len(kept))


def fit_judge(
    prompt: JudgePrompt, topic: str, history: Sequence[Exchange], question: str, answer: str, tokens: int
) -> tuple[tuple[Message, ...], int]:
    """The judge's prompt, and how much of the history it shows."""
    most = chars_for(tokens)
    kept = list(history) if prompt == "extended" else []
    # What is left out changes the labels of the rest, which weigh nothing beyond their number.
    messages = judge_message(prompt, topic, kept, question, answer)
    surplus = surplus_of(messages[0].words)
    while kept and len(messages[0].words) + surplus > most:
        gone = kept.pop(0)
        surplus -= surplus_of(gone.question) + surplus_of(gone.answer)
        messages = judge_message(prompt, topic, kept, question, answer)
    return messages, len(kept)
