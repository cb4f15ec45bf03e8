"""A conversation as a model writes it: the prompt of appendix A.2, to the letter, and which answers are taken.

Owns what the prompt asks for that can be checked. Knows no call and no file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....engine.call import Message
from ..model_json import objects_in
from .alike import mark_of
from .topics import UnusableReply

QUESTIONS = 15
QUESTION_MAX = 200
_NAMES = ("topic", "domain", "initial_belief", "debate_strength")
# Appendix A.2, with its line breaks.
_PROMPT = Path(__file__).with_name("conversation-prompt.txt").read_text("utf-8").removesuffix("\n")
_RAW_MAX = 16_000


def prompt_of(topic: str, domain: str) -> str:
    # Not by two replacements: a topic may hold the words "{domain}".
    before, _, rest = _PROMPT.partition("{topic}")
    between, _, after = rest.partition("{domain}")
    return f"{before}{topic}{between}{domain}{after}"


def again(topic: str, domain: str, raw: str, reason: str) -> tuple[Message, ...]:
    """The prompt, the answer to it, and why it can't be used."""
    said = (Message("assistant", raw[:_RAW_MAX]),) if raw.strip() else ()
    request = f"That can't be used: {reason}. Output only the JSON object, corrected."
    return (Message("user", prompt_of(topic, domain)), *said, Message("user", request))


def read_reply(text: str, topic: str, domain: str) -> dict[str, Any]:
    """A conversation in the paper's shape, under the topic and domain that were asked for. Raises UnusableReply."""
    wrong: UnusableReply | None = None
    for found in objects_in(text):
        try:
            return _read(found, topic, domain)
        except UnusableReply as error:
            if wrong is None or "questions" in found:
                wrong = error
    raise wrong or UnusableReply("expected a JSON object, came none")


def _read(found: dict[str, Any], topic: str, domain: str) -> dict[str, Any]:
    missing = [name for name in (*_NAMES, "questions") if name not in found]
    if missing:
        raise UnusableReply(f'"{missing[0]}": expected this key, came none')
    for name in _NAMES:
        if not isinstance(found[name], str) or not found[name].strip():
            raise UnusableReply(f'"{name}": expected a text, came none')
    questions = found["questions"]
    if not isinstance(questions, list):
        raise UnusableReply('"questions": expected an array of strings, came none')
    if len(questions) != QUESTIONS:
        raise UnusableReply(f'"questions": expected exactly {QUESTIONS}, came {len(questions)}')
    kept: dict[tuple[str, ...], int] = {}
    read = []
    for number, question in enumerate(questions, 1):
        if not isinstance(question, str) or not question.strip():
            raise UnusableReply(f"question {number}: expected a text, came none")
        words = " ".join(question.split())
        if len(words) > QUESTION_MAX:
            raise UnusableReply(f"question {number}: expected at most {QUESTION_MAX} characters, came {len(words)}")
        try:
            words.encode()
        except UnicodeEncodeError as error:
            raise UnusableReply(f"question {number}: expected a text, came one with a lone surrogate") from error
        first = kept.setdefault(mark_of(words), number)
        if first != number:
            raise UnusableReply(f"question {number}: expected another than question {first}, came nearly the same")
        read.append(words)
    return {
        "topic": topic,
        "domain": domain,
        "initial_belief": found["initial_belief"].strip(),
        "debate_strength": found["debate_strength"].strip(),
        "questions": read,
    }
