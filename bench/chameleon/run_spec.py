"""The specification of a Chameleon run: the values that decide its prompts and answers, and no others.

Owns the specification. Knows no folder and sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert, field, to_builtins

from ...configuration.declared_options import specified
from ...engine.pairs import Pair
from ...metrics.chameleon.readings import Readings
from ..evaluation.door.treatments import as_list, pairs_in
from .context import CUT_VERSION
from .dataset import ConversationSet
from .options import TURNS, PromptOptions
from .order import KINDS_VERSION
from .prompts import PROMPT_VERSION

_FIRST = frozenset(("turns", "pages", "order", "seed", "judge_prompt", "page_tokens", "max_tokens"))
TEMPERATURES: tuple[float, ...] = (0.0, 0.5, 1.0)


class ConversationSpec(PromptOptions, frozen=True, kw_only=True):
    """The specification of a run: the options that its prompts are made by, its pairs, its judge and search engine.
    `tokens` is the most that a prompt to each model, the judge included, may have. `keeps_pages`: later prompts repeat
    the pages of earlier turns. `queries_by` writes the queries for all pairs (None:
    each pair its own). `judge_temperature`, `judge_effort` None: none is sent. `readings` only decide how the run's own
    scores are computed."""

    pairs: tuple[Pair, ...]
    judge: str
    search: str
    tokens: Mapping[str, int] = field(name="prompt_tokens")
    keeps_pages: bool = False
    queries_by: Pair | None = None
    judge_temperature: float | None = 0.0
    judge_effort: str | None = None
    readings: Readings = Readings()


def beyond(dataset: ConversationSet, turns: int, conversations: int | None) -> list[str]:
    """Returns sentences on conversations and turns that were requested but are not in the data set."""
    sentences = []
    held = dataset.conversations
    if conversations is not None and conversations > len(held):
        sentences.append(f"{conversations:,} conversations asked for: the data set has {len(held):,}, and all are held")
    short = [len(each.questions) for each in held if len(each.questions) < turns]
    if short:
        whose = "every conversation has" if len(short) == len(held) else f"{len(short):,} of {len(held):,} have"
        many = f"{min(short):,}" if min(short) == max(short) else f"{min(short):,} to {max(short):,}"
        noun = "question" if max(short) == 1 else "questions"
        sentences.append(f"{turns:,} turns asked for: {whose} {many} {noun}, and no more turns")
    longest = max((len(each.questions) for each in held), default=0)
    if turns == TURNS < longest:
        # Only where the number may be the default: who names another one knows that it leaves questions out.
        sentences.append(
            f"conversations have up to {longest:,} questions, of which {turns} turns ask {turns}: --turns {longest} "
            f"asks all"
        )
    return sentences


def specification(
    data: str, turns: Mapping[str, int], spec: ConversationSpec, endpoints: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the values that decide prompts and answers, and the readings of the run's own scores. `data` is the
    digest of the data set, `turns` has the number of each conversation's turns, `endpoints` each lane's address as used
    in the cache keys of its calls."""
    return {
        "benchmark": "chameleon",
        "data": data,
        "conversations": list(turns),
        "turns_each": list(turns.values()),
        **specified(spec, PromptOptions, _FIRST),
        "seed": spec.seed if spec.order == "shuffled" else None,
        "kinds_version": KINDS_VERSION if spec.order == "grouped" else None,
        "pairs": [as_list(pair) for pair in spec.pairs],
        "endpoints": dict(endpoints),
        "prompt_tokens": dict(spec.tokens),
        "prompt_version": PROMPT_VERSION,
        "search": spec.search,
        "retrieval": "own" if spec.queries_by is None else "shared",
        "queries_by": None if spec.queries_by is None else as_list(spec.queries_by),
        "keeps_pages": spec.keeps_pages,
        "cut_version": CUT_VERSION,
        "judge": spec.judge,
        "judge_temperature": spec.judge_temperature,
        **({} if spec.judge_effort is None else {"judge_effort": spec.judge_effort}),
        "readings": to_builtins(spec.readings),
    }


def spec_in(specification: Mapping[str, Any]) -> ConversationSpec:
    """Returns what a specification says of a run's conversations."""
    # A seed that draws nothing is None there.
    return convert(
        {name: value for name, value in specification.items() if (name, value) != ("seed", None)}, ConversationSpec
    )


def readings_of_run(manifest: Mapping[str, Any]) -> Readings:
    """Returns the readings of the run's own scores. Raises KeyError, TypeError or ValueError if the manifest is not a
    Chameleon run's."""
    return convert(manifest["specification"]["readings"], Readings)


def planned_turns(specification: Mapping[str, Any]) -> dict[Pair, dict[str, int]]:
    """Returns for each pair of a run the planned conversations, with their numbers of turns."""
    turns = dict(zip(specification["conversations"], specification["turns_each"], strict=True))
    return dict.fromkeys(pairs_in(specification), turns)
