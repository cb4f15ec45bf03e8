"""Sample numbers: what makes two identical prompts two samples, and one retrieval one.

Owns the ranks of every turn among those with the same prompt, over the whole data set, so that a run of its first
conversations asks what the whole run will ask. Pure; knows no call.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence

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
        queries: Counter[Hashable] = Counter()
        prefixes: Counter[Hashable] = Counter()
        questions: Counter[Hashable] = Counter()
        for conversation in conversations:
            so_far = hashlib.sha256()
            for turn, place in enumerate(places_in_order(conversation, turns, order, seed), 1):
                question = conversation.questions[place]
                data = question.encode()
                so_far.update(b"%d\n" % len(data) + data)
                keys = (hash_of(conversation.topic, question), so_far.digest()[:16], hash_of(question))
                rank = Sample(queries[keys[0]], prefixes[keys[1]], questions[keys[2]])
                for counter, key in zip((queries, prefixes, questions), keys, strict=True):
                    counter[key] += 1
                if rank != FIRST:
                    self._ranks[conversation.id, turn] = rank

    def of(self, conversation: str, turn: int) -> Sample:
        return self._ranks.get((conversation, turn), FIRST)


def hash_of(*texts: str) -> bytes:
    joined = b"".join(b"%d\n%b" % (len(data), data) for data in (text.encode() for text in texts))
    return hashlib.sha256(joined).digest()[:16]
