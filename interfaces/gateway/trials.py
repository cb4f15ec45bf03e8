"""Decides which trial a request is: given by the caller, or counted, so that a repeated question is a new sample.

Owns the counts: by caller, run and question, in memory, for as long as the gateway lives. Counting never gives two
requests the same number; the number of a request without an answer is given to the next. When the memory for counts is
full, new questions are rejected; none is forgotten.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import OrderedDict

from msgspec import Struct

from ...providers.llm.serve_dialect import RequestRefusal

# About 120 bytes each.
QUESTIONS_MAX = 2_000_000
REPEATED_MAX = 100_000
_SIZE = 16


class RequestTrials(Struct, eq=False):
    """The trial numbers of one request, from 0. `question` is the hash of its caller, run and question, under which
    they are counted; `name` and `asked` are the hashes of its Idempotency-Key and of its body, empty without such a
    header. `holders`: how many requests with that header have the numbers now."""

    numbers: tuple[int, ...]
    question: bytes = b""
    asked: bytes = b""
    name: bytes = b""
    holders: int = 1
    is_answered: bool = False


class TrialCounter:
    """The trial numbers in use, by caller, run and question. `is_counting` False: every repeat is the same trial. At
    most `questions_max` questions are counted, and `repeated_max` Idempotency-Keys kept, the latest."""

    def __init__(
        self, *, is_counting: bool = True, questions_max: int = QUESTIONS_MAX, repeated_max: int = REPEATED_MAX
    ) -> None:
        self._is_counting = is_counting
        self._questions_max = questions_max
        self._repeated_max = repeated_max
        self._next: dict[bytes, int] = {}
        self._returned: dict[bytes, list[int]] = {}
        # By the caller's Idempotency-Key, the oldest first.
        self._repeated: OrderedDict[bytes, RequestTrials] = OrderedDict()

    def __repr__(self) -> str:
        return f"<TrialCounter [{len(self._next):,} questions, {len(self._repeated):,} named requests]>"

    def take(self, scope: str, key: bytes, count: int, body: bytes, idempotency: str = "") -> RequestTrials:
        """Returns `count` trial numbers for one request. `scope`: caller and run; `key`: the question's hash; `body`:
        the body's hash. Never awaits, so no two requests get the same number."""
        name = _digest(scope, idempotency.encode("utf-8", "surrogateescape"), b"name") if idempotency else b""
        # Some clients name the model in the path: the same body may be another question.
        digest = hashlib.sha256(key + b"\0" + body).digest() if idempotency else b""
        if name and (earlier := self._repeated.get(name)) is not None:
            if earlier.asked != digest:
                raise RequestRefusal(
                    "this Idempotency-Key came with another body or model before: use a new one", None, "conflict", 422
                )
            earlier.holders += 1
            return earlier
        taken = self._counted(scope, key, count)
        if name:
            taken.name, taken.asked = name, digest
            self._repeated[name] = taken
            # A key that is used again after that begins a new question, and never gets the answer of another.
            if len(self._repeated) > self._repeated_max:
                self._repeated.popitem(last=False)
        return taken

    def end(self, taken: RequestTrials, *, is_answered: bool) -> None:
        """Ends one request with these numbers. They are free again if no request with them was answered."""
        taken.is_answered |= is_answered
        taken.holders -= 1
        if taken.holders or taken.is_answered:
            return
        if taken.name and self._repeated.get(taken.name) is taken:
            del self._repeated[taken.name]
        if taken.question:
            self._give_back(taken)

    def _counted(self, scope: str, key: bytes, count: int) -> RequestTrials:
        if not self._is_counting:
            return RequestTrials(tuple(range(count)))
        question = _digest(scope, key, b"question")
        upcoming = self._next.get(question)
        if upcoming is None:
            if len(self._next) >= self._questions_max:
                raise RequestRefusal(
                    f"{self._questions_max:,} different questions have been counted, and no more can be: send "
                    f"X-Millstream-Trial, or start the gateway again",
                    None,
                    "rate_limited",
                    503,
                )
            upcoming = 0
        numbers: list[int] = []
        returned = self._returned.get(question)
        while returned and len(numbers) < count:
            numbers.append(heapq.heappop(returned))
        if returned is not None and not returned:
            del self._returned[question]
        wanted = count - len(numbers)
        numbers.extend(range(upcoming, upcoming + wanted))
        self._next[question] = upcoming + wanted
        return RequestTrials(tuple(numbers), question)

    def _give_back(self, taken: RequestTrials) -> None:
        """Frees the numbers for the next request. A question whose numbers are all free is forgotten."""
        returned = self._returned.setdefault(taken.question, [])
        for number in taken.numbers:
            heapq.heappush(returned, number)
        if len(returned) == self._next[taken.question]:
            del self._next[taken.question], self._returned[taken.question]


def _digest(scope: str, key: bytes, kind: bytes) -> bytes:
    data = scope.encode("utf-8", "surrogateescape") + b"\0" + key
    return hashlib.blake2b(data, digest_size=_SIZE, person=kind).digest()
