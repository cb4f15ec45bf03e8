"""Topics of a domain: the prompt that asks a model for them, the reader of its answer, and the reader of a file that
lists them.

Owns what counts as a topic. `generation` decides which of them are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ....engine.runs.data_file import DatasetError, kind_of, parse, read_text
from ...evaluation.data.data_rows import entries_of_file
from ...evaluation.data.model_json import UnusableAnswer, lists_in

TOPIC_MAX = 150
_COLUMNS = ("domain", "topic")


def prompt_of(domain: str, count: int, excluded: Sequence[str]) -> str:
    """Returns the prompt for `count` topics other than the `excluded` ones."""
    listed = "".join(f"\n- {topic}" for topic in excluded)
    others = f"\nLeave out these, and whatever says the same in other words:{listed}" if excluded else ""
    return (
        f"List {count} contentious topics of the domain {domain}: questions of fact, ethics or policy on which "
        f"informed people hold opposing views, and on which evidence can be found on the web. Each is a noun phrase of "
        f"at most 12 words, specific, and different from the others.{others}\n"
        f"Output only a JSON array of {count} strings."
    )


def read_reply(text: str) -> tuple[str, ...]:
    """Returns the topics in an answer, which may have text around their list. Raises UnusableAnswer if there is no
    list."""
    for items in lists_in(text):
        topics = tuple(" ".join(topic.split()) for topic in items if isinstance(topic, str) and topic.strip())
        topics = tuple(topic for topic in topics if len(topic) <= TOPIC_MAX and topic.isprintable())
        if topics:
            return topics
    raise UnusableAnswer("expected a JSON array of strings, got none")


def read_topics(path: Path) -> dict[str, tuple[str, ...]]:
    """Returns the topics of a file by domain: a JSON object of lists, or a CSV with the columns domain and topic.
    Raises DatasetError if it is malformed."""
    is_csv = path.suffix.lower() in (".csv", ".tsv")
    listed = _of_csv(path) if is_csv else _of_json(parse(read_text(path), str(path)), path)
    topics: dict[str, list[str]] = {}
    for where, domain, topic in listed:
        for what, words in (("domain", domain), ("topic", topic)):
            if not words.strip() or len(words) > TOPIC_MAX:
                raise DatasetError(f"{where}: {what}: expected 1 to {TOPIC_MAX} characters, got {len(words.strip()):,}")
        topics.setdefault(domain.strip(), []).append(" ".join(topic.split()))
    if not topics:
        raise DatasetError(f"{path}: expected at least one topic, got none")
    return {domain: tuple(dict.fromkeys(names)) for domain, names in topics.items()}


def _of_json(root: object, path: Path) -> Iterable[tuple[str, str, str]]:
    if not isinstance(root, Mapping):
        raise DatasetError(f"{path}: expected an object of domains, each with a list of topics, got {kind_of(root)}")
    for domain, topics in root.items():
        if not isinstance(topics, list):
            raise DatasetError(f"{path}: {domain}: expected a list of topics, got {kind_of(topics)}")
        for at, topic in enumerate(topics):
            if not isinstance(topic, str):
                raise DatasetError(f"{path}: {domain}[{at}]: expected a text, got {kind_of(topic)}")
            yield f"{path}: {domain}[{at}]", str(domain), topic


def _of_csv(path: Path) -> Iterable[tuple[str, str, str]]:
    for entry in entries_of_file(path):
        cells = {name.casefold(): cell for name, cell in entry.content.items()}
        if not set(_COLUMNS) <= cells.keys():
            raise DatasetError(f"{path}: expected the columns domain and topic, got {', '.join(cells)}")
        yield entry.where, cells["domain"], cells["topic"]
