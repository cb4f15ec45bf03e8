"""The issues of MillStone: read, checked, digested and selected.

Owns the released file format and what counts as well-formed. Texts are kept to the letter and
orientations as given. Knows neither draws nor prompts; judging labels against wordings is `data`'s job.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

Side = Literal["pro", "con"]

PARAPHRASES = 6
FORMAT_VERSION = 1

# The ten issues on which GPT and Grok models were evaluated (appendix E of the paper, without the refused ones).
CONTROVERSIAL = (
    "Olympics",
    "Ronald-Reagan",
    "Saturday-Halloween",
    "US-penny",
    "binge-watching",
    "drones",
    "fighting-in-hockey",
    "school-uniforms",
    "standardized-tests",
    "teacher-tenure",
)

_CITATION = re.compile(r"\[([0-9]+)\]")
_ID = re.compile(r"[^\s/,\ud800-\udfff]+")  # ids stand between slashes in records and between commas in --issues


class DatasetError(ValueError):
    """The data set, or a choice of its issues, isn't usable: file, field, what was expected, what came."""


class Paraphrase(Struct, frozen=True):
    """One neutral wording. `orientation` is the side that answering A means."""

    question: str
    orientation: Side


class Argument(Struct, frozen=True):
    """One argument. `citations` are the sources its text names, in order of first mention, each as (n, source)."""

    id: str
    side: Side
    text: str
    citations: tuple[tuple[str, str], ...]


class Issue(Struct, frozen=True):
    """One question with six wordings. `arguments` holds all pro arguments, then all con arguments, in file order."""

    id: str
    question: str
    paraphrases: tuple[Paraphrase, ...]
    arguments: tuple[Argument, ...]

    def count(self, side: Side) -> int:
        return sum(argument.side == side for argument in self.arguments)


class Dataset(Struct, frozen=True):
    """Issues in the order of their ids. A selection keeps the digests of the whole set that it was taken from.

    `digest` is the SHA-256 of the canonical JSON of every issue. `draw_digest` is the same without
    orientations: it seeds the draws, so that correcting a label changes no prompt.
    """

    name: str
    digest: str
    draw_digest: str
    issues: tuple[Issue, ...]


def load(path: Path) -> Dataset:
    """Read a folder of issue files in the released format, or one data set file."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise DatasetError(f"{path}: expected a folder of issue files, came a folder without any .json file")
        issues = [_issue(_parse(file), file.stem, str(file)) for file in files]
    else:
        issues = _issues_of_file(path)
    issues.sort(key=lambda issue: issue.id)
    return Dataset(
        name=path.resolve().stem if path.is_file() else path.resolve().name,
        digest=_digest(issues, with_orientation=True),
        draw_digest=_digest(issues, with_orientation=False),
        issues=tuple(issues),
    )


def select(dataset: Dataset, issues: str = "all", limit: int | None = None) -> Dataset:
    """Keep some issues: `all`, `controversial`, ids between commas, or a file with an id at the start of each line.

    The order stays the data set's, and so do both digests: a first look draws the prompts of the whole run.
    """
    if limit is not None and limit < 1:
        raise DatasetError(f"limit ({limit}) must be >= 1")
    known = {issue.id: issue for issue in dataset.issues}
    if issues == "all":
        wanted: set[str] = set(known)
    elif issues == "controversial":
        wanted = set(CONTROVERSIAL)
        missing = sorted(wanted - set(known))
        if missing:
            raise DatasetError(
                f"data set {dataset.name} holds {len(wanted) - len(missing)} of the {len(wanted)} controversial issues,"
                f" not {', '.join(missing)}: name the issues that you want"
            )
    else:
        wanted = set(_named(issues, known))
    kept = [issue for issue in dataset.issues if issue.id in wanted][:limit]
    return msgspec.structs.replace(dataset, issues=tuple(kept))


def _named(issues: str, known: Mapping[str, Issue]) -> list[str]:
    """The ids that a comma list or a file names, each of them known."""
    source, names = "issues", [name.strip() for name in issues.split(",") if name.strip()]
    # An issue's id wins over a file of the same name; os.path, since Path.is_file raises on a list too long for a name.
    if issues not in known and os.path.isfile(issues):
        source = issues
        lines = _read(Path(issues)).splitlines()
        names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if not names:
        raise DatasetError(f"{source}: expected at least one issue id, came none")
    for name in names:
        if name not in known:
            raise DatasetError(
                f"{source}: no issue {name!r} among the {len(known)} of the data set; nearest: {_nearest(name, known)}"
            )
    return names


def _nearest(name: str, known: Iterable[str]) -> str:
    by_fold = {known_id.casefold(): known_id for known_id in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=3, cutoff=0.0)
    return ", ".join(by_fold[fold] for fold in close)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DatasetError(f"{path}: expected UTF-8, came byte 0x{byte:02x} at offset {error.start}") from error
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, came: {error.strerror}") from error


def _parse(path: Path) -> Any:
    try:
        return json.loads(_read(path))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise DatasetError(f"{path}: expected JSON, came something else at {place}: {error.msg}") from error
    except RecursionError as error:
        raise DatasetError(f"{path}: expected an issue, came JSON nested too deeply to read") from error


def _issues_of_file(path: Path) -> list[Issue]:
    where, root = str(path), _parse(path)
    if not isinstance(root, dict) or "millstone_dataset" not in root:
        raise DatasetError(
            f'{where}: expected {{"millstone_dataset": {FORMAT_VERSION}, "issues": {{…}}}}, came {_kind(root)} without'
            " millstone_dataset: for files of one issue each, give their folder"
        )
    version = root["millstone_dataset"]
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DatasetError(f"{where}: millstone_dataset: expected {FORMAT_VERSION}, came {_shown(version)}")
    issues = _field(root, "issues", dict, where)
    if not issues:
        raise DatasetError(f"{where}: issues: expected at least one issue, came none")
    return [_issue(content, issue_id, f"{where}: issues[{_shown(issue_id)}]") for issue_id, content in issues.items()]


def _issue(content: Any, issue_id: str, where: str) -> Issue:
    if not _ID.fullmatch(issue_id):
        raise DatasetError(f"{where}: issue id: expected no space, slash or comma, came {_shown(issue_id)}")
    if not isinstance(content, dict):
        raise DatasetError(f"{where}: expected an object, came {_kind(content)}")
    question = _text(_field(content, "question", str, where), f"{where}: question")
    sources = _field(content, "sources", dict, where)
    for key, source in sources.items():
        _text(source, f"{where}: sources[{_shown(key)}]", may_be_empty=True)
    arguments = (*_arguments(content, "pro", sources, where), *_arguments(content, "con", sources, where))
    return Issue(issue_id, question, _paraphrases(content, where), arguments)


def _arguments(content: Mapping[str, Any], side: Side, sources: Mapping[str, str], where: str) -> list[Argument]:
    name = f"{side}s"
    texts = _field(content, name, list, where)
    if not texts:
        raise DatasetError(f"{where}: {name}: expected at least one argument, came an empty list")
    arguments = []
    for index, text in enumerate(texts):
        _text(text, f"{where}: {name}[{index}]")
        numbers = dict.fromkeys(_CITATION.findall(text))
        citations = tuple((n, sources[f"[{n}]"]) for n in numbers if f"[{n}]" in sources)
        arguments.append(Argument(f"{side}-{index + 1}", side, text, citations))
    return arguments


def _paraphrases(content: Mapping[str, Any], where: str) -> tuple[Paraphrase, ...]:
    given = _field(content, "paraphrases", list, where)
    if len(given) != PARAPHRASES:
        raise DatasetError(f"{where}: paraphrases: expected {PARAPHRASES}, came {len(given)}")
    paraphrases = []
    for index, entry in enumerate(given):
        here = f"{where}: paraphrases[{index}]"
        if not isinstance(entry, dict):
            raise DatasetError(f"{here}: expected an object, came {_kind(entry)}")
        question = _text(_field(entry, "question", str, here), f"{here}.question")
        orientation = _field(entry, "orientation", str, here)
        if orientation not in ("pro", "con"):
            raise DatasetError(f'{here}.orientation: expected "pro" or "con", came {_shown(orientation)}')
        paraphrases.append(Paraphrase(question, cast(Side, orientation)))
    return tuple(paraphrases)


def _field(content: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    expected = _KINDS[kind]
    if name not in content:
        raise DatasetError(f"{where}: {name}: expected {expected}, came nothing: the field is missing")
    if not isinstance(content[name], kind):
        raise DatasetError(f"{where}: {name}: expected {expected}, came {_kind(content[name])}")
    return content[name]


def _text(value: Any, where: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str):
        raise DatasetError(f"{where}: expected a text, came {_kind(value)}")
    if not (may_be_empty or value.strip()):
        raise DatasetError(f"{where}: expected a text, came an empty one")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DatasetError(
            f"{where}: expected a text, came one with a lone surrogate at character {error.start}"
        ) from error
    return value


_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind(value: Any) -> str:
    return _KINDS[type(value)]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _digest(issues: Sequence[Issue], *, with_orientation: bool) -> str:
    """SHA-256 of {id: issue} as JSON: keys sorted, no white space, not escaped beyond JSON's need, UTF-8."""
    content = {}
    for issue in issues:
        built = msgspec.to_builtins(issue)
        if not with_orientation:
            built["paraphrases"] = [paraphrase.question for paraphrase in issue.paraphrases]
        content[issue.id] = built
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
