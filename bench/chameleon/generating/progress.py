"""The progress of writing a data set: topics and conversations, one line each, safe against a kill.

Owns the file beside the data set, and rejects that of a different data set. Knows no model's answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ....engine.fault import LocalFault
from ....engine.runs.data_file import DatasetError
from ....engine.runs.journal import Journal, Reserve


class GenerationProgress:
    """The progress file, a context manager. `forget` removes it once the data set itself is written."""

    def __init__(self, path: Path, specification: Mapping[str, Any]) -> None:
        self.path = path
        self.topics: dict[str, tuple[str, ...]] = {}
        self.conversations: dict[tuple[str, str], dict[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reserve = Reserve(path.with_name(path.name + ".reserve"), 1 << 20)
            self._journal = Journal(path, self._reserve)
        except OSError as error:
            raise LocalFault(f"{path} can't be written ({error.strerror}): choose another --out") from error
        try:
            self._read(specification)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> GenerationProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        topics = sum(map(len, self.topics.values()))
        return f"<GenerationProgress {self.path.name} [{topics} topics, {len(self.conversations)} conversations]>"

    def keep_topics(self, domain: str, topics: Sequence[str]) -> None:
        self.topics[domain] = tuple(topics)
        self._write({"domain": domain, "topics": list(topics)})

    def keep_conversation(self, content: dict[str, Any]) -> None:
        self.conversations[content["domain"], content["topic"]] = content
        self._write({"conversation": content})

    def close(self) -> None:
        try:
            self._journal.close()
        finally:
            self._reserve.release()

    def forget(self) -> None:
        """Removes the file; call `close` before."""
        self.path.unlink(missing_ok=True)

    def _read(self, specification: Mapping[str, Any]) -> None:
        ours = orjson.loads(orjson.dumps(specification))
        is_empty = True
        for data in self._journal.read():
            line = orjson.loads(data)
            if is_empty and line.get("specification") != ours:
                raise DatasetError(
                    f"{self.path}: expected the beginnings of this data set, got those of another: choose another "
                    f"--out, or move that file away"
                )
            is_empty = False
            if "topics" in line:
                self.topics[line["domain"]] = tuple(line["topics"])
            elif "conversation" in line:
                content = line["conversation"]
                self.conversations[content["domain"], content["topic"]] = content
        if is_empty:
            self._write({"specification": ours})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._journal.append(orjson.dumps(line))
        self._journal.flush()
        if self._journal.fault is not None:
            raise self._journal.fault
