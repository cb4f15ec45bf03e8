"""Sample numbers: what makes two identical prompts two samples, and one retrieval one.

Owns the ranks of every turn among those with the same prompt, over the whole data set, so that a run of its first
conversations asks what the whole run will ask. Pure; knows no call.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from .dataset import Conversation
from .order import Order, places_in_order


class Sample(Struct, frozen=True):
    """The ranks of one turn. `query`: among the turns with the same topic and question. `conversation`: among the
    conversations that have asked the same questions so far, which is how often an answer prompt can come up.
    `question`: among the turns with the same question, whatever went before."""

    query: int = 0
    conversation: int = 0
    question: int = 0


FIRST = Sample()


class Samples:
    """The ranks of every turn. Most are the first of their kind, and only the others are kept."""

    def __init__(self, conversations: Sequence[Conversation], turns: int, order: Order, seed: int = 0) -> None:
        self._ranks: dict[tuple[str, int], Sample] = {}
        queries: defaultdict[tuple[str, str], int] = defaultdict(int)
        prefixes: defaultdict[bytes, int] = defaultdict(int)
        questions: defaultdict[str, int] = defaultdict(int)
        for conversation in conversations:
            so_far = hashlib.sha256()
            for turn, place in enumerate(places_in_order(conversation, turns, order, seed), 1):
                question = conversation.questions[place]
                data = question.encode()
                so_far.update(b"%d\n" % len(data) + data)
                asked, prefix = (conversation.topic, question), so_far.digest()
                ranks = (queries[asked], prefixes[prefix], questions[question])
                queries[asked] += 1
                prefixes[prefix] += 1
                questions[question] += 1
                if any(ranks):
                    self._ranks[conversation.id, turn] = Sample(*ranks)

    def of(self, conversation: str, turn: int) -> Sample:
        return self._ranks.get((conversation, turn), FIRST)
