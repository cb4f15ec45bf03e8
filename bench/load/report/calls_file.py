"""Reads `calls.jsonl` for the figures over time that `load.json` does not have: throughput and calls in flight.

Owns what makes the file unfit: a page is written without these figures then, and says why.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from ....engine.folder_file import lines_in
from ....metrics.load.load_json import LoadFigures
from ....metrics.load.traffic import CallSpans
from ..folder import CALLS


class UnfitCalls(ValueError):
    """Raised for a `calls.jsonl` that does not hold the calls of its test; the message is the end of a sentence."""


class _Line(Struct):
    model: str
    begun: float
    ended: float
    status: str
    output_tokens: int


class _Columns:
    def __init__(self) -> None:
        self.begun, self.ended = array("d"), array("d")
        self.is_answered, self.output_tokens = array("b"), array("q")

    def take(self, line: _Line) -> None:
        self.begun.append(line.begun)
        self.ended.append(line.ended)
        self.is_answered.append(line.status in ("ok", "refused"))
        self.output_tokens.append(line.output_tokens)

    def spans(self) -> CallSpans:
        return CallSpans(
            np.array(self.begun, dtype=np.float64),
            np.array(self.ended, dtype=np.float64),
            np.array(self.is_answered, dtype=np.bool_),
            np.array(self.output_tokens, dtype=np.int64),
        )


def calls_in(folder: Path, load: LoadFigures) -> Mapping[str, CallSpans]:
    """Returns all calls by model, those of warm-up and cool-down too. Raises UnfitCalls if the file is missing, damaged
    or has not as many calls as the test sent."""
    columns = {model: _Columns() for model in load.models}
    decode = msgspec.json.Decoder(_Line).decode
    try:
        for number, text in enumerate(lines_in(folder / CALLS), 1):
            try:
                line = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise UnfitCalls(f"line {number} of {CALLS} can't be read") from error
            if line.model in columns:
                columns[line.model].take(line)
    except OSError as error:
        raise UnfitCalls(f"{CALLS} can't be read ({error.strerror})") from error
    for model, figures in load.models.items():
        count = len(columns[model].begun)
        if count != figures.begun:
            raise UnfitCalls(f"{CALLS} has {count:,} calls of {model}, and {figures.begun:,} were sent")
    return {model: each.spans() for model, each in columns.items()}
