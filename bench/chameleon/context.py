"""Fits history and pages into a prompt. Without room for all it omits in this order: the oldest turns until two are
left, the old pages of these two, pages from the last until one is left, the two turns, the last page.

Tokens are estimated from characters and their script as in the engine, but by a fixed ratio, so that a prompt is the
same on every machine. Owns the order of cutting; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...engine.call import Message
from ...engine.estimate import TOKENS_PER_CHAR, surplus_of, weight_of
from .prompts import JudgePrompt, PastTurn, ShownPage, answer_messages, judge_message, sources_text, turn_messages

TITLE_MAX = 300
TURNS_KEPT = 2  # as long as a second page is left to omit
# Of the order above, for specifications.
CUT_VERSION = 2
_TURN, _OLD_PAGES, _PAGE = "turn", "old pages", "page"


class PromptCuts(Struct, frozen=True, omit_defaults=True):
    """The parts cut from a turn's prompts. `pages` are the numbers of shortened pages, `dropped` of omitted ones;
    `history` and `judge_history` are how many of the oldest turns the answer's and the judge's prompt omit, `old_pages`
    how many of the turns that the answer's prompt shows are without the pages that were to be kept."""

    pages: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    history: int = 0
    judge_history: int = 0
    old_pages: int = 0


class AnswerPrompt(Struct, frozen=True):
    """An answer's prompt: its `messages`, the pages shown in it (`sources`), how many earlier turns are in it
    (`history`), and how many of these without their old pages, for want of room (`old_pages`)."""

    messages: tuple[Message, ...]
    sources: tuple[ShownPage, ...]
    history: int
    old_pages: int = 0


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
    """Returns the prompt for an answer: omits one part after another until it fits into `tokens` or only the question
    is left."""
    kept, listed, bare = list(history), list(sources), 0
    messages = answer_messages(kept, sources_text(listed), question)
    excess = sum(weight_of(message.words) for message in messages) - chars_for(tokens)
    for part in _order_of_cutting(len(kept), len(listed)):
        if excess <= 0:
            break
        if part == _TURN:
            excess -= _weight_of_turn(kept.pop(0))
        elif part == _OLD_PAGES:
            excess -= _weight_of_turn(kept[bare])
            kept[bare] = kept[bare]._replace(sources="")
            excess += _weight_of_turn(kept[bare])
            bare += 1
        else:
            excess -= weight_of(sources_text(listed[-2:])) - weight_of(sources_text(listed[-2:-1]))
            listed.pop()
    originals = history[len(history) - len(kept) :]
    return AnswerPrompt(
        messages=answer_messages(kept, sources_text(listed), question),
        sources=tuple(listed),
        history=len(kept),
        old_pages=sum(now.sources != whole.sources for now, whole in zip(kept, originals, strict=True)),
    )


def _order_of_cutting(turns: int, pages: int) -> list[str]:
    """Returns the parts of a prompt in the order in which they are omitted. _TURN is the oldest one left, _OLD_PAGES
    are those of the next of the last turns, the older first, _PAGE is the last one left."""
    last = min(turns, TURNS_KEPT)
    before = [_TURN] * (turns - last) + [_OLD_PAGES] * last + [_PAGE] * (pages - 1)
    return before + [_TURN] * last + [_PAGE] * min(pages, 1)


def _weight_of_turn(turn: PastTurn) -> int:
    return sum(weight_of(message.words) for message in turn_messages(turn))


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
