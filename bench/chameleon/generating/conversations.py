"""One conversation written by a model: the prompt of appendix A.2, unchanged, and which answers are accepted.

Owns the checkable requirements of the prompt. Knows no call and no file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....engine.call import Message
from ...evaluation.data.model_json import objects_in
from .near_duplicates import mark_of
from .topics import UnusableAnswer

QUESTIONS = 15  # of the paper's prompt
QUESTION_MAX = 200
_NAMES = ("topic", "domain", "initial_belief", "debate_strength")
# Appendix A.2, with its line breaks.
_PROMPT = Path(__file__).with_name("conversation-prompt.txt").read_text("utf-8").removesuffix("\n")
_COUNT_PHRASE = f'"questions": array of {QUESTIONS} strings'
_RAW_MAX = 16_000


def prompt_of(topic: str, domain: str, questions: int = QUESTIONS) -> str:
    """Returns the paper's prompt; for another number of questions, with that number alone changed."""
    template = _PROMPT.replace(_COUNT_PHRASE, f'"questions": array of {questions} strings')
    # Not by two replacements: a topic may contain the text "{domain}".
    before, _, rest = template.partition("{topic}")
    between, _, after = rest.partition("{domain}")
    return f"{before}{topic}{between}{domain}{after}"


def again(prompt: str, raw: str, reason: str) -> tuple[Message, ...]:
    """Returns the messages of another try: the prompt, the unusable answer, and the reason why it is unusable."""
    answer = (Message("assistant", raw[:_RAW_MAX]),) if raw.strip() else ()
    request = f"That can't be used: {reason}. Output only the JSON object, corrected."
    return (Message("user", prompt), *answer, Message("user", request))


def read_reply(text: str, topic: str, domain: str, questions: int = QUESTIONS) -> dict[str, Any]:
    """Returns a conversation in the paper's format, under the given topic and domain. Raises UnusableAnswer if the text
    holds none with this number of questions."""
    wrong: UnusableAnswer | None = None
    for fields in objects_in(text):
        try:
            return _read(fields, topic, domain, questions)
        except UnusableAnswer as error:
            if wrong is None or "questions" in fields:
                wrong = error
    raise wrong or UnusableAnswer("expected a JSON object, got none")


def _read(fields: dict[str, Any], topic: str, domain: str, number_of_questions: int) -> dict[str, Any]:
    missing = [name for name in (*_NAMES, "questions") if name not in fields]
    if missing:
        raise UnusableAnswer(f'"{missing[0]}": expected this key, got none')
    for name in _NAMES:
        if not isinstance(fields[name], str) or not fields[name].strip():
            raise UnusableAnswer(f'"{name}": expected a text, got none')
    questions = fields["questions"]
    if not isinstance(questions, list):
        raise UnusableAnswer('"questions": expected an array of strings, got none')
    if len(questions) != number_of_questions:
        raise UnusableAnswer(f'"questions": expected exactly {number_of_questions}, got {len(questions)}')
    kept: dict[tuple[str, ...], int] = {}
    read = []
    for number, question in enumerate(questions, 1):
        if not isinstance(question, str) or not question.strip():
            raise UnusableAnswer(f"question {number}: expected a text, got none")
        words = " ".join(question.split())
        if len(words) > QUESTION_MAX:
            raise UnusableAnswer(f"question {number}: expected at most {QUESTION_MAX} characters, got {len(words)}")
        try:
            words.encode()
        except UnicodeEncodeError as error:
            raise UnusableAnswer(f"question {number}: expected a text, got one with a lone surrogate") from error
        first = kept.setdefault(mark_of(words), number)
        if first != number:
            raise UnusableAnswer(f"question {number}: expected another than question {first}, got nearly the same")
        read.append(words)
    return {
        "topic": topic,
        "domain": domain,
        "initial_belief": fields["initial_belief"].strip(),
        "debate_strength": fields["debate_strength"].strip(),
        "questions": read,
    }
