"""Sample numbers, which decide whether identical prompts are separate calls or shared ones.

Owns the ranks of every turn among those with the same prompt, over the whole data set, so that a run of its first
conversations sends the same calls as a run of all. Pure; knows no call.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from .dataset import Conversation
from .order import Order, places_in_order


class TurnRanks(Struct, frozen=True):
    """The ranks of one turn, from 0, which are the trial numbers of its calls, so that equal prompts are separate
    calls. `query` (of the query's call): among the turns with the same topic and question. `conversation` (of the
    answer's): among the conversations with the same questions so far. `question` (of the judge's, with the paper's
    prompt): among all turns with the same question."""

    query: int = 0
    conversation: int = 0
    question: int = 0


FIRST = TurnRanks()


class Samples:
    """A table of the ranks of every turn; only those that are not all 0 are stored."""

    def __init__(self, conversations: Sequence[Conversation], turns: int, order: Order, seed: int | None = 0) -> None:
        self._ranks: dict[tuple[str, int], TurnRanks] = {}
        queries: defaultdict[tuple[str, str], int] = defaultdict(int)
        prefixes: defaultdict[bytes, int] = defaultdict(int)
        questions: defaultdict[str, int] = defaultdict(int)
        for conversation in conversations:
            so_far = hashlib.sha256()
            for turn, place in enumerate(places_in_order(conversation, turns, order, seed), 1):
                question = conversation.questions[place]
                data = question.encode()
                so_far.update(b"%d\n" % len(data) + data)
                query, prefix = (conversation.topic, question), so_far.digest()
                ranks = (queries[query], prefixes[prefix], questions[question])
                queries[query] += 1
                prefixes[prefix] += 1
                questions[question] += 1
                if any(ranks):
                    self._ranks[conversation.id, turn] = TurnRanks(*ranks)

    def of(self, conversation: str, turn: int) -> TurnRanks:
        return self._ranks.get((conversation, turn), FIRST)
