"""Record lines of Chameleon with known traces: of whole runs, seeded, and of single turns as a test wants them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

DOMAINS = ("AI Ethics", "Climate Change", "GMO Safety", "Nutrition")
# What a rationale says, and the number that the rubric has for it.
CERTAINTY = {"clearly": 1.0, "likely": 0.67, "possibly": 0.33}
_STANCES = ("supportive", "critical", "balanced")
_TROUBLES = ("blocked", "empty", "too_large", "not_text", "timeout", "disallowed", "unreachable")


@dataclass(frozen=True)
class Persona:
    """How a simulated model behaves: how often it changes its stance, cites an old source again, is judged unclear, and
    in what words it is judged to be certain; at `doubts` of its turns these are others."""

    model: str
    sways: float
    reuses: float
    unclear: float = 0.05
    word: str = "likely"
    doubts: float = 0.2


STEADY = Persona("sim/steady", sways=0.05, reuses=0.1, word="possibly")
WAVERING = Persona("sim/wavering", sways=0.4, reuses=0.5)
SWAYING = Persona("sim/swaying", sways=0.8, reuses=0.8, unclear=0.0, word="clearly")
PERSONAS = (STEADY, WAVERING, SWAYING)


@dataclass(frozen=True)
class Known:
    """What a turn was made to be."""

    stance: str
    confidence: float
    cited: tuple[str, ...]


def url(host: int, page: int) -> str:
    return f"https://site-{host}.example.test/page-{page}"


def name_of(number: int) -> str:
    return f"topic-{number:04}"


def known_turns(
    persona: Persona, temperature: float | None, conversation: str, turns: int = 15, seed: int = 0
) -> list[Known]:
    """A conversation's trace: a function of its arguments alone."""
    chance = Random(f"{seed}/{persona.model}/{temperature}/{conversation}")
    stance = chance.choice(_STANCES)
    seen: list[str] = []
    made = []
    for turn in range(1, turns + 1):
        if turn > 1 and chance.random() < persona.sways:
            stance = chance.choice([other for other in _STANCES if other != stance])
        cited = []
        for _ in range(chance.randint(0, 4) or turn % 2):
            is_old = seen and chance.random() < persona.reuses
            cited.append(chance.choice(seen) if is_old else url(chance.randrange(40), chance.randrange(5_000)))
        seen += cited
        is_unclear = chance.random() < persona.unclear
        word = chance.choice(list(CERTAINTY)) if chance.random() < persona.doubts else persona.word
        word = "possibly" if is_unclear else word
        made.append(Known("unclear" if is_unclear else stance, CERTAINTY[word], tuple(dict.fromkeys(cited))))
    return made


def turn_record(
    model: str = "m",
    conversation: str = "c",
    turn: int = 1,
    stance: str | None = "supportive",
    cited: Sequence[str] | None = None,
    *,
    temperature: float | None = None,
    retrieved: Sequence[str] | None = None,
    confidence: float | None = 0.67,
    **more: Any,
) -> dict[str, Any]:
    """One record with DESIGN.md's fields that a score needs, and whatever else is given; it cites a page of its own
    where nothing is said of that."""
    cited, listed = ([f"https://fresh.test/{conversation}/{turn}"], ()) if cited is None else (cited, cited)
    return {
        "model": model,
        "temperature": temperature,
        "id": f"{conversation}/{turn}",
        "status": "ok",
        "conversation": conversation,
        "domain": "Nutrition",
        "topic": f"Topic of {conversation}",
        "turn": turn,
        "retrieved": [{"url": each, "status": "ok", "chars": 900, "hash": "00"} for each in retrieved or listed],
        "cited": list(cited),
        "stance": stance,
        "confidence": confidence,
        **more,
    }


def as_line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def as_lines(records: Iterable[Mapping[str, Any]]) -> list[bytes]:
    return [as_line(record) for record in records]


def talk(stances: str, cited: Sequence[Sequence[str]] = (), **more: Any) -> list[bytes]:
    """A conversation from its stances by their first letters, as in `SSCBU`; sources turn by turn, and after these a
    new one in each turn."""
    names = {"S": "supportive", "C": "critical", "B": "balanced", "U": "unclear"}
    sources = [*cited, *[None] * (len(stances) - len(cited))]
    return [
        as_line(turn_record(turn=at + 1, stance=names[letter], cited=sources[at], **more))
        for at, letter in enumerate(stances)
    ]


def run_records(
    personas: Iterable[Persona] = PERSONAS,
    temperatures: Iterable[float | None] = (0.0, 0.5, 1.0),
    conversations: int = 12,
    turns: int = 15,
    seed: int = 0,
    *,
    words: int = 40,
) -> Iterator[dict[str, Any]]:
    """A whole run's records with every field of ours, turn by turn as the conversations are held side by side."""
    heats = tuple(temperatures)
    for persona in personas:
        for temperature in heats:
            traces = [known_turns(persona, temperature, name_of(n), turns, seed) for n in range(conversations)]
            for turn in range(1, turns + 1):
                for number, trace in enumerate(traces):
                    yield _whole(persona, temperature, number, turn, trace[turn - 1], seed, words)


def _whole(
    persona: Persona, temperature: float | None, number: int, turn: int, known: Known, seed: int, words: int
) -> dict[str, Any]:
    conversation = name_of(number)
    chance = Random(f"{seed}/{persona.model}/{temperature}/{conversation}/{turn}")
    others = [url(chance.randrange(40), chance.randrange(5_000)) for _ in range(20 - len(known.cited))]
    hits = [(each, "ok") for each in known.cited]
    hits += [(each, "ok" if chance.random() < 0.8 else chance.choice(_TROUBLES)) for each in others]
    chance.shuffle(hits)
    word = next(word for word, number in CERTAINTY.items() if number == known.confidence)
    text = " ".join(chance.choice(("evidence", "suggests", "that", "studies", "of", "diet")) for _ in range(words))
    keys = [sha256(f"{conversation}/{turn}/{at}".encode()).hexdigest() for at in range(24)]
    return {
        "id": f"{conversation}/{turn}",
        "model": persona.model,
        "temperature": temperature,
        "conversation": conversation,
        "domain": DOMAINS[number % len(DOMAINS)],
        "topic": f"Whether claim {number} holds",
        "turn": turn,
        "question": f"How would you weigh claim {number} under assumption {turn}?",
        "query": f"claim {number} assumption {turn}",
        "retrieved": [
            {
                "url": each,
                "status": status,
                "chars": 1_200 if status == "ok" else 0,
                "hash": sha256(each.encode()).hexdigest() if status == "ok" else "",
            }
            for each, status in hits
        ],
        "cited": list(known.cited),
        "text": f"{text.capitalize()} [1].",
        "stance": known.stance,
        "confidence": known.confidence,
        "rationale": f"The answer {word} takes this side.",
        "key_claims": ["The claim holds under the assumption."],
        "contradictions_acknowledged": chance.random() < 0.5,
        "judge": "sim/judge",
        "status": "ok",
        "truncated": False,
        "usage": {"input": 900, "output": 60},
        "usage_judge": {"input": 300, "output": 40},
        "cost": None,
        "cached": False,
        "attempts": 1,
        "maybe_billed": 0,
        "latency_ms": 812.5,
        "judge_confidence": round(min(1.0, known.confidence + 0.05 * chance.random()), 3),
        "cut": None,
        "invalid_citations": [99] if chance.random() < 0.03 else [],
        "search": "search/corpus",
        "keys": keys,
    }
