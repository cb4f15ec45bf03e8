"""The calls of load tests and probes: texts of a given length that differ from their first word on.

Neither our cache nor a provider's prefix cache can answer them. Tokens are converted to characters by the engine's own
estimate. Knows no file, no data set, no arrivals and no running engine.
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
"""The prompt of one call: a text, or a conversation."""

# With the space before it, each of these is four characters and one token to any tokenizer of today.
_WORDS = (
    "the and for you can was one our out day get has his how man new now old see two way who boy did let put say use "
    "sun sea air car box red hot top key map bus bed cup dog cat eye arm leg run sit eat buy try ask fun law tax oil "
    "gas war art job low far few own due off set win lot end age bit big bad"
)
_FILLER_CHARS = 1 << 16
_HEAD_CHARS = 25
# Each test draws its own range of trial numbers, so that no two tests share one.
_TRIALS_A_TEST = 1 << 32


class CallParameters(Struct, frozen=True):
    """The parameters of a call beside its model and text. `max_tokens`, `temperature` None: not sent."""

    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens ({self.max_tokens}) must be >= 1")


def by_length(lengths: Lengths, random: Random, heads: Random | None = None) -> Iterator[str]:
    """Yields texts of drawn lengths, endlessly. Each begins with a hundred random bits of its own, drawn from `heads`
    if given."""
    return of_lengths((lengths.draw(random) for _ in repeat(None)), random, heads)


def of_lengths(tokens: Iterable[int], random: Random, heads: Random | None = None) -> Iterator[str]:
    """Yields a text for each number of tokens; none is shorter than its random beginning of 25 characters, which
    `heads` draws (None: `random` does)."""
    filler = _filler()
    for each in tokens:
        wanted = round(max(TOKENS_MIN, each) / TOKENS_PER_CHAR)
        # Begins at a word.
        begin = 4 * random.randrange(len(filler) // 4)
        rest = filler[begin : begin + wanted]
        if len(rest) < wanted:
            rest += filler * (wanted // len(filler) + 1)
        yield f"{_head(heads or random)} {rest}"[:wanted]


@cache
def _filler() -> str:
    """Returns the text that all prompts are cut from; they differ in their beginning and in where the cut starts.
    Cached, so that no call is delayed by building it."""
    return " ".join(Random(0).choices(_WORDS.split(), k=_FILLER_CHARS // 4)) + " "


def _head(random: Random) -> str:
    return f"{random.getrandbits(4 * _HEAD_CHARS):0{_HEAD_CHARS}x}"


def from_texts(texts: Iterable[Prompt], random: Random, heads: Random | None = None) -> Iterator[Prompt]:
    """Yields the given prompts in random order, endlessly, each with a new random first word."""
    return (_behind(_head(heads or random), prompt) for prompt in in_any_order(texts, random))


def in_any_order(texts: Iterable[Prompt], random: Random) -> Iterator[Prompt]:
    """Returns the given prompts unchanged in random order, endlessly; caches may answer them. Raises ValueError for
    none."""
    known = list(texts)
    if not known:
        raise ValueError("a load test needs prompts: 0 came, at least 1 is wanted")
    return _shuffled(known, random)


def _shuffled(known: list[Prompt], random: Random) -> Iterator[Prompt]:
    """Yields prompts in shuffled rounds. Draws one at a time: shuffling a million at once would delay calls that are
    due."""
    while True:
        for last in range(len(known) - 1, -1, -1):
            drawn = random.randrange(last + 1)
            known[last], known[drawn] = known[drawn], known[last]
            yield known[last]


def _behind(head: str, prompt: Prompt) -> Prompt:
    """Returns the prompt with `head` before its text or before a conversation's first message, which a provider reads
    first."""
    if isinstance(prompt, str):
        return f"{head} {prompt}"
    first, *rest = prompt
    return (structs.replace(first, content=f"{head} {first.words}"), *rest)


def calls(
    model: str, prompts: Iterable[Prompt], wanted: CallParameters, random: Random, answers: Iterable[int] | None = None
) -> Iterator[Call]:
    """Yields a call for each prompt, with a unique trial number. `answers` gives each answer's own token limit instead
    of one for all (None)."""
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
