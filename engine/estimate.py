"""Estimates how many tokens a call will take, before the provider reports it.

Input: characters, weighted by their script, times a ratio that the reported usage corrects. Output: the 95th percentile
of the lane's latest answers. Needs no tokenizer and no download.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import orjson

from .call import Call, Usage
from .content import IMAGE_CHARS, Native, images_in, texts_in, texts_of_tools
from .limits import Tokens

TOKENS_PER_CHAR = 0.25
# The upper bytes, in UTF-16, of characters of which a token has several: all but the scripts of Asia east of Arabic,
# and pictographs. The second half of a surrogate pair is among them, so that a pair counts once.
_OTHERS = bytes([*range(0x08), *range(0x1E, 0x2E), *range(0xDC, 0xE0)])
_SURPLUS = round(1 / TOKENS_PER_CHAR) - 1
OUTPUT_FIRST = 256
# For each byte, whether it is white space of ASCII: 1 or 0.
_IS_WHITE = bytes([byte < 128 and chr(byte).isspace() for byte in range(256)])
# Characters a token that no text but white space has.
_DENSE = 8
# Tokens that providers add: to a prompt, to each turn, and where tools are offered, for each of their own again.
_ADDED, _ADDED_TO_TURN, _ADDED_FOR_TOOLS = 16, 16, 1_024
# The largest count of any provider, OpenAI's for its smallest model: eight tiles of 5,667 tokens each and 2,833
# besides.
IMAGE_TOKENS_MOST = 48_169
_WINDOW = 256
# What a learned ratio may be above the true one by the error of floating-point sums alone, in tokens.
_ROUNDING = 1e-6
_REFRESH = 16


def chars_of(call: Call) -> int:
    texts, images = _content_of(call)
    return sum(map(len, texts)) + IMAGE_CHARS * images


def _content_of(call: Call) -> tuple[list[str], int]:
    """Returns all texts that a model reads, and the number of images."""
    texts, images = _texts_of_prompt(call), 0
    if not isinstance(call.input, str):
        images = sum(images_in(message.content) for message in call.input)
    return (texts if call.tools is None else [*texts, *texts_of_tools(call.tools)]), images


def _texts_of_prompt(call: Call) -> list[str]:
    if isinstance(call.input, str):
        return [call.input]
    return [text for message in call.input for text in texts_in(message.content)]


def surplus_of(text: str) -> int:
    """Returns what a text's weight exceeds its length by: three for each character that takes about one token."""
    return _SURPLUS * len(text.encode("utf-16-le", "surrogatepass")[1::2].translate(None, _OTHERS))


def weight_of(text: str) -> int:
    """Returns a text's length in characters of about 1/4 token; one that takes about a whole token counts as four."""
    return len(text) if text.isascii() else len(text) + surplus_of(text)


def call_weight(call: Call) -> int:
    if isinstance(call.input, str) and call.tools is None:
        return weight_of(call.input)
    texts, images = _content_of(call)
    return sum(map(weight_of, texts)) + IMAGE_CHARS * images


def prompt_weight(call: Call, tokens: int, weight: int | None = None) -> int:
    """Returns the weight of a prompt's texts (`weight`, if somebody has summed it up). Where so few tokens were
    reported that white space may be the reason, a run of it weighs one character: a token holds any number."""
    if weight is None:
        weight = sum(map(weight_of, _texts_of_prompt(call)))
    return weight if weight < _DENSE * tokens else sum(map(_weight_of_words, _texts_of_prompt(call)))


def _weight_of_words(text: str) -> int:
    """Returns the weight of a text's words with one space between them."""
    if not text.isascii():
        return weight_of(" ".join(text.split()))
    text = text.strip()
    is_white = int.from_bytes(text.encode().translate(_IS_WHITE), "big")
    # All characters but the white space that follows white space.
    return len(text) - (is_white & is_white >> 8).bit_count()


def most_input(call: Call) -> int:
    """Returns an upper bound of the input tokens that any provider counts for a call's text, images and tools: each
    byte counts as one token, since no tokenizer makes more of it."""
    texts, images = _content_of(call)
    turns = 1 if isinstance(call.input, str) else len(call.input)
    tokens = len("".join(texts).encode("utf-8", "surrogatepass")) + images * IMAGE_TOKENS_MOST
    tokens += _ADDED + turns * _ADDED_TO_TURN
    for parameter in (call.json_schema, call.extra):
        if parameter is not None:
            tokens += len(orjson.dumps(parameter, default=str, option=orjson.OPT_NON_STR_KEYS))
    listed = None if call.extra is None else call.extra.get("tools")
    if call.tools is None and call.json_schema is None and listed is None:
        return tokens
    # A provider describes its own tools itself, at a length that the request does not show.
    native_tools = sum(isinstance(tool, Native) and tool.on is None for tool in call.tools or ())
    native_tools += len(listed) if isinstance(listed, Sequence) else 0
    return tokens + _ADDED_FOR_TOOLS * (1 + native_tools)


class TokenEstimate:
    """The estimate of the tokens that one lane's calls take, corrected by every reported usage."""

    def __init__(self) -> None:
        self.tokens_per_char = TOKENS_PER_CHAR
        self.output_p95 = OUTPUT_FIRST
        self._outputs: deque[int] = deque(maxlen=_WINDOW)
        self._seen = 0

    def tokens_of(self, call: Call, weight: int) -> Tokens:
        """Returns the tokens to reserve for a call of this weight before it is sent."""
        # Rounded up: a reservation that is too small by a part of a token passes the quota by a whole one.
        read = max(1, math.ceil(weight * self.tokens_per_char - _ROUNDING))
        return Tokens(read, self.output_p95 if call.max_tokens is None else call.max_tokens)

    def most_by_weight(self, weight: int) -> int:
        """Returns the most tokens that a prompt of this weight should have by what was reported of others: a provider
        may count more than their text explains."""
        return math.ceil(1.5 * weight * self.tokens_per_char)

    def observe(self, weight: int, usage: Usage) -> None:
        if weight and usage.input is not None:
            # A slow average: one odd prompt must not swing the reservations of the next thousand.
            self.tokens_per_char += (usage.input / weight - self.tokens_per_char) / (8 if self._seen < 8 else 32)
        self._seen += 1
        if usage.output is not None:
            self._outputs.append(usage.output)
        if self._outputs and self._seen % _REFRESH == 0:
            ordered = sorted(self._outputs)
            self.output_p95 = max(1, ordered[int(0.95 * (len(ordered) - 1))])
