"""The calls of a load test: texts of a wanted length, no two alike from their first word on.

So neither our cache nor a provider's cache of prefixes answers. Tokens are characters by the engine's own estimate.
Knows no file, no data set, no arrivals and no engine at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count, repeat
from random import Random

from msgspec import Struct, structs

from ...engine.call import TRIAL_MAX, Call, Message
from ...engine.estimate import TOKENS_PER_CHAR
from .lengths import TOKENS_MIN, Lengths

Prompt = str | tuple[Message, ...]
"""What one call says: a text, or a conversation in texts."""

# With the space before it, each of these is four characters and one token to any tokenizer of today.
_WORDS = (
    "the and for you can was one our out day get has his how man new now old see two way who boy did let put say use "
    "sun sea air car box red hot top key map bus bed cup dog cat eye arm leg run sit eat buy try ask fun law tax oil "
    "gas war art job low far few own due off set win lot end age bit big bad"
)
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


def by_length(lengths: Lengths, random: Random, heads: Random | None = None) -> Iterator[str]:
    """Texts of drawn lengths, without end. Each begins with its own hundred random bits, of `heads` if given."""
    return of_lengths((lengths.draw(random) for _ in repeat(None)), random, heads)


def of_lengths(tokens: Iterable[int], random: Random, heads: Random | None = None) -> Iterator[str]:
    """A text for each number of tokens; none is shorter than its head."""
    filler = _filler()
    for each in tokens:
        wanted = round(max(TOKENS_MIN, each) / TOKENS_PER_CHAR)
        # At the beginning of a word.
        begin = 4 * random.randrange(len(filler) // 4)
        rest = filler[begin : begin + wanted]
        if len(rest) < wanted:
            rest += filler * (wanted // len(filler) + 1)
        yield f"{_head(heads or random)} {rest}"[:wanted]


@cache
def _filler() -> str:
    """The same for all: a prompt is another by its head and by where it begins. Made once, since no call should be
    late by it."""
    return " ".join(Random(0).choices(_WORDS.split(), k=_FILLER_CHARS // 4)) + " "


def _head(random: Random) -> str:
    return f"{random.getrandbits(4 * _HEAD_CHARS):0{_HEAD_CHARS}x}"


def from_texts(texts: Iterable[Prompt], random: Random, heads: Random | None = None) -> Iterator[Prompt]:
    """Given prompts, each behind another first word every time."""
    return (_behind(_head(heads or random), prompt) for prompt in in_any_order(texts, random))


def in_any_order(texts: Iterable[Prompt], random: Random) -> Iterator[Prompt]:
    """Given prompts as they are, in random order, again and again: what a cache knows, it may answer."""
    known = list(texts)
    if not known:
        raise ValueError("a load test needs prompts: 0 came, at least 1 is wanted")
    return _shuffled(known, random)


def _shuffled(known: list[Prompt], random: Random) -> Iterator[Prompt]:
    """Drawn one by one: to shuffle a million at once would hold up the calls that are due meanwhile."""
    while True:
        for last in range(len(known) - 1, -1, -1):
            drawn = random.randrange(last + 1)
            known[last], known[drawn] = known[drawn], known[last]
            yield known[last]


def _behind(head: str, prompt: Prompt) -> Prompt:
    """What a provider reads first is a conversation's first message, whoever's it is."""
    if isinstance(prompt, str):
        return f"{head} {prompt}"
    first, *rest = prompt
    return (structs.replace(first, content=f"{head} {first.words}"), *rest)


def calls(
    model: str, prompts: Iterable[Prompt], wanted: Wanted, random: Random, answers: Iterable[int] | None = None
) -> Iterator[Call]:
    """A call for each prompt, with a trial number that no other call has. `answers`: the most tokens of each answer, in
    place of one number for all."""
    first = random.randrange(TRIAL_MAX // _TRIALS_A_TEST) * _TRIALS_A_TEST
    most = repeat(wanted.max_tokens) if answers is None else answers
    for number, prompt, max_tokens in zip(count(first), prompts, most, strict=False):
        yield Call(
            model,
            prompt,
            temperature=wanted.temperature,
            max_tokens=max_tokens,
            trial=number,
            stream=wanted.stream,
        )
