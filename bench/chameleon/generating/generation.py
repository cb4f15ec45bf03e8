"""Generates a data set with a model: topics for each domain, then a conversation for each topic, by the prompt of
appendix A.2, unchanged.

Owns how often the model is asked, which topics are new, which of the prompt's requirements are checked, and what was
rejected and why. The runner of calls is passed in; knows no engine and no screen.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ....engine.call import Call, Message, Outcome
from ....engine.fault import Stop, Stopped
from ...evaluation.data.model_json import UnusableAnswer, first_usable
from .near_duplicates import mark_of
from .topics import prompt_of as topics_prompt
from .topics import read_reply as read_topics

QUESTIONS = 15  # of the paper's prompt
QUESTION_MAX = 200
_NAMES = ("topic", "domain", "initial_belief", "debate_strength")
# Appendix A.2, with its line breaks.
_PROMPT = Path(__file__).with_name("conversation-prompt.txt").read_text("utf-8").removesuffix("\n")
_COUNT_PHRASE = f'"questions": array of {QUESTIONS} strings'
_RAW_MAX = 16_000


def prompt_of(topic: str, domain: str, questions: int = QUESTIONS) -> str:
    """Returns the paper's prompt; for another number of questions, with that number alone changed."""
    template = _PROMPT.replace(_COUNT_PHRASE, f'"questions": array of {questions} strings')
    # Not by two replacements: a topic may contain the text "{domain}".
    before, _, rest = template.partition("{topic}")
    between, _, after = rest.partition("{domain}")
    return f"{before}{topic}{between}{domain}{after}"


def again(prompt: str, raw: str, reason: str) -> tuple[Message, ...]:
    """Returns the messages of another try: the prompt, the unusable answer, and the reason why it is unusable."""
    answer = (Message("assistant", raw[:_RAW_MAX]),) if raw.strip() else ()
    request = f"That can't be used: {reason}. Output only the JSON object, corrected."
    return (Message("user", prompt), *answer, Message("user", request))


def read_reply(text: str, topic: str, domain: str, questions: int = QUESTIONS) -> dict[str, Any]:
    """Returns a conversation in the paper's format, under the given topic and domain. Raises UnusableAnswer if the text
    holds none with this number of questions."""
    return first_usable(text, lambda fields: _read(fields, topic, domain, questions), "questions")


def _read(fields: dict[str, Any], topic: str, domain: str, number_of_questions: int) -> dict[str, Any]:
    missing = [name for name in (*_NAMES, "questions") if name not in fields]
    if missing:
        raise UnusableAnswer(f'"{missing[0]}": expected this key, got none')
    for name in _NAMES:
        if not isinstance(fields[name], str) or not fields[name].strip():
            raise UnusableAnswer(f'"{name}": expected a text, got none')
    questions = fields["questions"]
    if not isinstance(questions, list):
        raise UnusableAnswer('"questions": expected an array of strings, got none')
    if len(questions) != number_of_questions:
        raise UnusableAnswer(f'"questions": expected exactly {number_of_questions}, got {len(questions)}')
    kept: dict[tuple[str, ...], int] = {}
    read = []
    for number, question in enumerate(questions, 1):
        if not isinstance(question, str) or not question.strip():
            raise UnusableAnswer(f"question {number}: expected a text, got none")
        words = " ".join(question.split())
        if len(words) > QUESTION_MAX:
            raise UnusableAnswer(f"question {number}: expected at most {QUESTION_MAX} characters, got {len(words)}")
        try:
            words.encode()
        except UnicodeEncodeError as error:
            raise UnusableAnswer(f"question {number}: expected a text, got one with a lone surrogate") from error
        first = kept.setdefault(mark_of(words), number)
        if first != number:
            raise UnusableAnswer(f"question {number}: expected another than question {first}, got nearly the same")
        read.append(words)
    return {
        "topic": topic,
        "domain": domain,
        "initial_belief": fields["initial_belief"].strip(),
        "debate_strength": fields["debate_strength"].strip(),
        "questions": read,
    }


ROUNDS_MAX = 8  # of asking a domain for more topics
ATTEMPTS_MAX = 4  # of asking for one conversation
_MORE = 5  # topics that are asked for beyond those missing, since some will be known already

Watch = Callable[[int], AbstractContextManager[object]]
"""Takes the number of calls that begin now; returns a context manager around them."""

Topic = tuple[str, str]
"""A domain and one of its topics."""


class CallRunner(Protocol):
    """The interface of the engine's method that sends calls."""

    def run(self, calls: Iterable[Call]) -> AsyncIterator[Outcome]: ...


class Rejection(Struct, frozen=True):
    """An answer that was rejected, and why. `topic` empty: the answer was a domain's list of topics."""

    domain: str
    topic: str
    reason: str


class ConversationGeneration:
    """The generation of a data set by a model: `counts` conversations of each domain, with this number of `questions`,
    on the `topics` given (None: the model names them). One that is made anew takes its answers from the engine's cache,
    so that a stopped one goes on where it was."""

    def __init__(
        self,
        model: str,
        counts: Mapping[str, int],
        topics: Mapping[str, Sequence[str]] | None = None,
        questions: int = QUESTIONS,
    ) -> None:
        self.model = model
        self.questions = questions
        self.conversations: dict[Topic, dict[str, Any]] = {}
        self.refused: list[Rejection] = []
        self.failures: dict[Topic, str] = {}
        self.stops: tuple[Stop, ...] = ()
        self.answers = 0
        self.cached = 0
        self.maybe_billed = 0
        self.cost: float | None = None  # as long as no answer has a price
        self._counts = dict(counts)
        self.topics: dict[str, list[str]] = {domain: [] for domain in self._counts}
        self._marks: set[tuple[str, ...]] = set()
        self._bad: dict[Topic, tuple[str, str]] = {}
        self._is_given = topics is not None
        for domain, names in (topics or {}).items():
            self._add_topics(domain, names)

    def __repr__(self) -> str:
        written = f"{len(self.conversations)} of {sum(self._counts.values())} conversations written"
        return f"<ConversationGeneration [{self.model}: {written}, {len(self.pending)} pending]>"

    @property
    def _every(self) -> list[Topic]:
        return [(domain, topic) for domain, topics in self.topics.items() for topic in topics]

    @property
    def pending(self) -> tuple[Topic, ...]:
        """The topics that have neither a conversation nor a final failure."""
        return tuple(topic for topic in self._every if topic not in self.conversations and topic not in self.failures)

    @property
    def lacking(self) -> Mapping[str, int]:
        """The number of topics that each domain still lacks; domains that lack none are left out."""
        short = {domain: count - len(self.topics[domain]) for domain, count in self._counts.items()}
        return {domain: count for domain, count in short.items() if count > 0}

    def contents(self) -> list[dict[str, Any]]:
        """Returns the conversations in order of domains and topics, in the paper's format."""
        return [self.conversations[topic] for topic in self._every if topic in self.conversations]

    async def run(self, runner: CallRunner, watch: Watch = nullcontext) -> None:
        """Sends the calls for all missing topics and conversations. Returns early if a lane stops: the rest is then
        pending."""
        try:
            if not self._is_given:
                await self._find_topics(runner, watch)
            await self._write_conversations(runner, watch)
        except Stopped as stopped:
            self.stops = stopped.stops

    async def _find_topics(self, runner: CallRunner, watch: Watch) -> None:
        unfruitful: dict[str, int] = {}
        for number in range(ROUNDS_MAX):
            wanted = [domain for domain in self.lacking if unfruitful.get(domain, 0) < 2]
            if not wanted:
                break
            calls = [self._call_for_topics(domain, number) for domain in wanted]
            outcomes: dict[str, Outcome] = {}
            with watch(len(calls)):
                async for outcome in runner.run(calls):
                    self._count(outcome)
                    outcomes[outcome.call.tag] = outcome
            # In order of the domains, not of the answers, so that a topic of two domains always goes to the same one.
            for domain in wanted:
                if not self._take_topics(domain, outcomes[domain]):
                    unfruitful[domain] = unfruitful.get(domain, 0) + 1

    def _call_for_topics(self, domain: str, number: int) -> Call:
        topics = self.topics[domain]
        missing = self._counts[domain] - len(topics)
        return Call(self.model, topics_prompt(domain, missing + _MORE, topics), trial=number, tag=domain)

    def _take_topics(self, domain: str, outcome: Outcome) -> bool:
        """Adds the topics of an answer; returns whether any was new."""
        try:
            topics = read_topics(_text_of(outcome))
        except UnusableAnswer as error:
            self.refused.append(Rejection(domain, "", str(error)))
            return False
        return self._add_topics(domain, topics) > 0

    def _add_topics(self, domain: str, candidates: Sequence[str]) -> int:
        """Adds topics and returns how many were new. A topic is rejected if another one, of any domain, says nearly the
        same."""
        topics = self.topics.setdefault(domain, [])
        added = 0
        for topic in candidates:
            if len(topics) >= self._counts.get(domain, len(candidates)):
                break
            mark = mark_of(topic)
            if mark in self._marks:
                self.refused.append(Rejection(domain, topic, "nearly the same as another topic"))
                continue
            self._marks.add(mark)
            topics.append(topic)
            added += 1
        return added

    async def _write_conversations(self, runner: CallRunner, watch: Watch) -> None:
        for attempt in range(ATTEMPTS_MAX):
            wanted = self.pending
            if not wanted:
                return
            calls = (self._call_for_conversation(topic, attempt) for topic in wanted)
            with watch(len(wanted)):
                async for outcome in runner.run(calls):
                    self._take_conversation(outcome)
        for domain, topic in self.pending:
            reason = f"{ATTEMPTS_MAX} answers and none can be used; of the last: {self._bad[domain, topic][1]}"
            self.failures[domain, topic] = reason

    def _call_for_conversation(self, topic: Topic, attempt: int) -> Call:
        domain, words = topic
        bad = self._bad.get(topic)
        prompt = prompt_of(words, domain, self.questions)
        if bad is None:
            return Call(self.model, prompt, tag=topic)
        return Call(self.model, again(prompt, *bad), trial=attempt, tag=topic)

    def _take_conversation(self, outcome: Outcome) -> None:
        topic: Topic = outcome.call.tag
        domain, words = topic
        self._count(outcome)
        try:
            self.conversations[topic] = read_reply(_text_of(outcome), words, domain, self.questions)
        except UnusableAnswer as error:
            if outcome.reply is None:
                self.failures[topic] = str(error)
                return
            self._bad[topic] = ("" if outcome.reply.refused else outcome.reply.text, str(error))
            self.refused.append(Rejection(domain, words, str(error)))

    def _count(self, outcome: Outcome) -> None:
        self.answers += outcome.reply is not None
        self.cached += outcome.cached
        self.maybe_billed += outcome.maybe_billed
        if outcome.cost is not None:
            self.cost = (self.cost or 0.0) + outcome.cost


def _text_of(outcome: Outcome) -> str:
    """Returns the text of an answer. Raises UnusableAnswer for a refusal or a failure."""
    if outcome.failure is not None:
        raise UnusableAnswer(f"{outcome.failure.kind}: {outcome.failure.detail}")
    if outcome.reply is None or outcome.reply.refused:
        raise UnusableAnswer("the model refused")
    return outcome.reply.text


def encode(contents: Sequence[Mapping[str, Any]]) -> bytes:
    """Returns the bytes of the data set file, the same for the same conversations."""
    return (json.dumps(list(contents), ensure_ascii=False, indent=1) + "\n").encode()
