"""The calls of a load test: texts of a wanted length, no two alike from their first word on.

So neither our cache nor a provider's cache of prefixes answers. Tokens are characters by the engine's own estimate.
Reads the user's prompts from a file; knows no data set, no arrivals and no engine at work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random

from msgspec import Struct

from ...engine.call import TRIAL_MAX, Call
from ...engine.estimate import TOKENS_PER_CHAR
from .lengths import Lengths

_WORDS = (
    "river window garden letter market winter bridge paper silver morning kettle harbour village lantern orchard "
    "copper meadow station feather journey candle mirror thunder basket velvet anchor marble pepper ribbon tunnel"
)
# Of words, drawn once: each prompt begins somewhere in it.
_FILLER_CHARS = 1 << 16
_HEAD_CHARS = 25
# Trials of one test lie in a range of their own, which the test draws: so that no two tests share a number.
_TRIALS_A_TEST = 1 << 32


class Wanted(Struct, frozen=True):
    """What each call asks for beside its text."""

    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens ({self.max_tokens}) must be >= 1")


def by_length(lengths: Lengths, random: Random) -> Iterator[str]:
    """Texts of drawn lengths. Each begins with its own hundred random bits."""
    filler = " ".join(random.choices(_WORDS.split(), k=_FILLER_CHARS // 8))
    while True:
        wanted = round(lengths.draw(random) / TOKENS_PER_CHAR)
        begin = random.randrange(len(filler))
        rest = filler[begin:] + filler * (wanted // len(filler) + 1)
        yield f"{_head(random)} {rest}"[:wanted]


def _head(random: Random) -> str:
    return f"{random.getrandbits(4 * _HEAD_CHARS):0{_HEAD_CHARS}x}"


def from_texts(texts: Iterable[str], random: Random) -> Iterator[str]:
    """The user's prompts in random order, again and again, each time behind another first word."""
    known = list(texts)
    if not known:
        raise ValueError("a load test needs prompts: 0 came, at least 1 is wanted")
    while True:
        for text in random.sample(known, len(known)):
            yield f"{_head(random)} {text}"


def read_prompts(path: Path) -> list[str]:
    """A prompt a line: as text, as a JSON string, or as an object with `prompt`. Empty lines are passed over."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            found.append(_prompt_in(line, f"{path}, line {number}"))
    if not found:
        raise ValueError(f"{path} holds 0 prompts, at least 1 is wanted: write one a line")
    return found


def _prompt_in(line: str, where: str) -> str:
    if line.lstrip()[0] not in '{"':
        return line.strip()
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} begins like JSON and is none ({error}): mend it, or begin it otherwise") from error
    prompt = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(prompt, str) or not prompt:
        raise ValueError(f"{where} must be text, or an object whose `prompt` is text")
    return prompt


def calls(model: str, texts: Iterable[str], wanted: Wanted, random: Random) -> Iterator[Call]:
    """A call for each text, with a trial number that no other call has."""
    first = random.randrange(TRIAL_MAX // _TRIALS_A_TEST) * _TRIALS_A_TEST
    for number, text in zip(count(first), texts, strict=False):
        yield Call(
            model,
            text,
            temperature=wanted.temperature,
            max_tokens=wanted.max_tokens,
            trial=number,
            stream=wanted.stream,
        )
