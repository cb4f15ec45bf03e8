"""The conversations of Chameleon: topics with their questions, checked, named, digested and selected.

Owns which are well-formed, the ids of conversations without one, and which are the first N. Texts are kept unchanged.
Knows no prompt; `order` decides the order of questions and `dataset_file` reads files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...engine.runs.data_file import DatasetError as DatasetError
from ...engine.runs.data_file import field, kind_of, shown, text_of
from .dataset_file import FileEntry, entries_of

ID = re.compile(r"[^\s/,\ud800-\udfff]+")  # ids stand before slashes in records
_SLUG_MAX = 60
_text = partial(text_of, most=20_000)


class Conversation(Struct, frozen=True):
    """One topic and the questions on it, as written. `kinds` has one name for each question, or none at all."""

    id: str
    domain: str
    topic: str
    questions: tuple[str, ...]
    initial_belief: str = ""
    debate_strength: str = ""
    kinds: tuple[str, ...] = ()


class ConversationSet(Struct, frozen=True):
    """Conversations in the order of their files. A selection keeps the digest and the `whole` of the set that it was
    taken from.

    `digest` is the SHA-256 of the canonical JSON of every conversation by id, so it does not depend on their order.
    """

    name: str
    digest: str
    conversations: tuple[Conversation, ...]
    whole: tuple[Conversation, ...] = ()


def load(path: Path) -> ConversationSet:
    """Returns the conversations of a JSON object, a JSON list, JSON lines, a CSV, or a folder of such files. Raises
    DatasetError if they are malformed."""
    return build(path.resolve().stem, entries_of(path))


def build(name: str, entries: Iterable[FileEntry]) -> ConversationSet:
    """Returns the data set of conversations in the paper's format."""
    read = [(entry, _conversation(entry)) for entry in entries]
    if not read:
        raise DatasetError(f"{name}: expected at least one conversation, got none")
    named = _named(read)
    return ConversationSet(name, _digest(named), named, named)


def select(dataset: ConversationSet, conversations: int | None = None) -> ConversationSet:
    """Returns the first N conversations, taking the domains in turn, so that a small selection includes all of them;
    None: all conversations."""
    if conversations is not None and conversations < 1:
        raise DatasetError(f"conversations ({conversations}) must be >= 1")
    return msgspec.structs.replace(dataset, conversations=tuple(by_domains(dataset.conversations)[:conversations]))


def by_domains(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Returns the first conversation of every domain, in order of first appearance, then the second of every domain,
    and so on."""
    places: Counter[str] = Counter()
    rounds = []
    first: dict[str, int] = {}
    for conversation in conversations:
        domain = conversation.domain
        rounds.append((places[domain], first.setdefault(domain, len(first)), conversation))
        places[domain] += 1
    return [conversation for _, _, conversation in sorted(rounds, key=lambda each: each[:2])]


def content_of(conversation: Conversation) -> dict[str, Any]:
    """Returns a conversation in the paper's format."""
    content: dict[str, Any] = {
        "topic": conversation.topic,
        "domain": conversation.domain,
        "initial_belief": conversation.initial_belief,
        "debate_strength": conversation.debate_strength,
        "questions": list(conversation.questions),
    }
    if conversation.kinds:
        content["kinds"] = list(conversation.kinds)
    return content


def slug_of(text: str) -> str:
    """Returns the text's letters and digits of any script, in lower case, with dashes between, cut between words."""
    words = re.findall(r"[^\W_]+", text.casefold())
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > _SLUG_MAX and slug:
            break
        slug = longer
    return slug[:_SLUG_MAX] or "conversation"


def _conversation(entry: FileEntry) -> Conversation:
    content, where = entry.content, entry.where
    if not isinstance(content, dict):
        raise DatasetError(f"{where}: expected an object, got {kind_of(content)}")
    if not {"topic", "questions"} <= content.keys():
        fields = ", ".join(map(str, content))[:200] or "no field"
        raise DatasetError(f"{where}: expected a conversation, with topic and questions (a list), got {fields}")
    topic = _text(field(content, "topic", str, where), f"{where}: topic")
    questions = tuple(
        _text(question, f"{where}: questions[{at}]")
        for at, question in enumerate(field(content, "questions", list, where))
    )
    if not questions:
        raise DatasetError(f"{where}: questions: expected at least one, got an empty list")
    optional = {
        name: _text(content.get(name) or "", f"{where}: {name}", may_be_empty=True)
        for name in ("domain", "initial_belief", "debate_strength")
    }
    return Conversation(
        id=_given_id(content, where),
        topic=topic,
        questions=questions,
        kinds=_kinds(content, len(questions), where),
        **optional,
    )


def _given_id(content: Mapping[str, Any], where: str) -> str:
    if content.get("id") is None:
        return ""
    name = content["id"] if not isinstance(content["id"], int) else str(content["id"])
    if not isinstance(name, str) or not ID.fullmatch(name):
        raise DatasetError(f"{where}: id: expected a name without space, slash or comma, got {shown(name)}")
    return name


def _kinds(content: Mapping[str, Any], questions: int, where: str) -> tuple[str, ...]:
    if content.get("kinds") is None:
        return ()
    kinds = tuple(_text(kind, f"{where}: kinds[{at}]") for at, kind in enumerate(field(content, "kinds", list, where)))
    if kinds and len(kinds) != questions:
        raise DatasetError(f"{where}: kinds: expected one for each of {questions} questions, got {len(kinds)}")
    return kinds


def _named(read: Sequence[tuple[FileEntry, Conversation]]) -> tuple[Conversation, ...]:
    """Returns the conversations with an id each: its own, else its file's, else its topic's words. Equal names get a
    hash of the content, independent of the position in the file; of equal contents the later gets a number."""
    places: dict[str, str] = {}
    for entry, conversation in read:
        if conversation.id and (first := places.setdefault(conversation.id, entry.where)) != entry.where:
            raise DatasetError(f"{entry.where}: id: expected each once, got {shown(conversation.id)}, as in {first}")
    wanted = [conversation.id or slug_of(entry.name or conversation.topic) for entry, conversation in read]
    uses = Counter(wanted)
    seen: Counter[str] = Counter(places)
    named = []
    for name, (_, conversation) in zip(wanted, read, strict=True):
        if not conversation.id:
            if uses[name] > 1:
                name = f"{name}-{_fingerprint(conversation)}"
            seen[name] += 1
            while seen[name] > 1:
                name = f"{name}-{seen[name]}"
                seen[name] += 1
            conversation = msgspec.structs.replace(conversation, id=name)
        named.append(conversation)
    return tuple(named)


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _fingerprint(conversation: Conversation) -> str:
    return hashlib.sha256(_canonical(content_of(conversation))).hexdigest()[:8]


def _digest(conversations: Sequence[Conversation]) -> str:
    return hashlib.sha256(_canonical({each.id: content_of(each) for each in conversations})).hexdigest()
