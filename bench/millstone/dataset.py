"""The issues of MillStone: read, checked, digested and selected.

Owns which issues are well-formed. Texts are kept unchanged and orientations as given. Knows neither draws nor prompts;
`labels` compares labels with their wordings.
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

from ...engine.runs.data_file import DatasetError as DatasetError
from ...engine.runs.data_file import field, kind_of, parse, read_text, shown, text_of
from ...format import command_text
from .dataset_file import contents_of_file
from .reference import CONTROVERSIAL

Side = Literal["pro", "con"]

PARAPHRASES = 6

CITATION = re.compile(r"\[([0-9]+)\]")
ISSUE_ID = re.compile(r"[^\s/,\ud800-\udfff]+")  # ids stand between slashes in records and between commas in --issues


class Paraphrase(Struct, frozen=True):
    """One neutral wording of a question. `orientation` is the side that answering A means."""

    question: str
    orientation: Side


class Argument(Struct, frozen=True):
    """One argument. `citations` are the sources that its text cites, in order of first mention, each as (n, source)."""

    id: str
    side: Side
    text: str
    citations: tuple[tuple[str, str], ...]


class Issue(Struct, frozen=True):
    """One question with its six wordings. `arguments` holds all pro arguments, then all con arguments, in file
    order."""

    id: str
    question: str
    paraphrases: tuple[Paraphrase, ...]
    arguments: tuple[Argument, ...]

    def count(self, side: Side) -> int:
        return sum(argument.side == side for argument in self.arguments)


class IssueDataset(Struct, frozen=True):
    """Issues in the order of their ids. A selection keeps the digests of the whole set that it was taken from.

    `digest` is the SHA-256 of the canonical JSON of every issue. `draw_digest` is the same without orientations: it
    seeds the draws, so that correcting a label changes no prompt.
    """

    name: str
    digest: str
    draw_digest: str
    issues: tuple[Issue, ...]


def load(path: Path) -> IssueDataset:
    """Returns the data set of a folder of issue files in the released format, or of one data set file. Raises
    DatasetError if it is malformed."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise DatasetError(f"{path}: expected a folder of issue files, got a folder without any .json file")
        return of_issues(
            path.resolve().name, [_issue(parse(read_text(file), str(file)), file.stem, str(file)) for file in files]
        )
    if path.suffix.lower() in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"):
        made = command_text("data", "millstone", path, "--out", "set.json")
        raise DatasetError(f"{path}: expected a data set file in JSON, got a table: make one of it by {made}")
    contents = contents_of_file(parse(read_text(path), str(path)), str(path))
    return build(path.resolve().stem, contents, str(path))


def build(
    name: str, contents: Mapping[str, Any], where: str = "data set", *, needs_paraphrases: bool = True
) -> IssueDataset:
    """Returns the data set of issues in the released format, given by their ids. Without `needs_paraphrases` an issue
    may have none yet: such a set has digests, but no prompts."""
    return of_issues(
        name,
        [
            _issue(content, issue_id, f"{where}: issues[{shown(issue_id)}]", needs_paraphrases=needs_paraphrases)
            for issue_id, content in contents.items()
        ],
    )


def of_issues(name: str, issues: Iterable[Issue]) -> IssueDataset:
    """Returns the data set of these issues, sorted by id, with its digests."""
    issues = sorted(issues, key=lambda issue: issue.id)
    return IssueDataset(
        name=name,
        digest=_digest(issues, with_orientation=True),
        draw_digest=_digest(issues, with_orientation=False),
        issues=tuple(issues),
    )


# For data sets of which it is not known yet whether they hold the ten: one that holds none is asked whole.
CONTROVERSIAL_OR_ALL = "controversial-or-all"


def select(dataset: IssueDataset, issues: str = "all", limit: int | None = None) -> IssueDataset:
    """Returns the data set reduced to some issues: `all`, `controversial`, `controversial-or-all`, ids between commas,
    or a file with an id at the start of each line; then to the first `limit`. Raises DatasetError for an unknown id.

    The order and both digests stay the data set's, so that a part of a run has the same prompts as the whole run.
    """
    if limit is not None and limit < 1:
        raise DatasetError(f"limit ({limit}) must be >= 1")
    by_id = {issue.id: issue for issue in dataset.issues}
    if issues == "all" or (issues == CONTROVERSIAL_OR_ALL and by_id.keys().isdisjoint(CONTROVERSIAL)):
        wanted: set[str] = set(by_id)
    elif issues in ("controversial", CONTROVERSIAL_OR_ALL):
        wanted = set(CONTROVERSIAL)
        missing = sorted(wanted - set(by_id))
        if missing:
            raise DatasetError(
                f"data set {dataset.name} holds {len(wanted) - len(missing)} of the {len(wanted)} controversial issues,"
                f" not {', '.join(missing)}: name the issues that you want"
            )
    else:
        wanted = set(_named(issues, by_id))
    kept = [issue for issue in dataset.issues if issue.id in wanted][:limit]
    return msgspec.structs.replace(dataset, issues=tuple(kept))


def _named(issues: str, by_id: Mapping[str, Issue]) -> list[str]:
    """Returns the ids in a comma list or a file. Raises DatasetError if there is none or one is unknown."""
    source, names = "issues", [name.strip() for name in issues.split(",") if name.strip()]
    # An issue's id takes precedence over a file of that name; os.path, since Path.is_file raises for a list too long
    # for a name.
    if issues not in by_id and os.path.isfile(issues):
        source = issues
        lines = read_text(Path(issues)).splitlines()
        names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if not names:
        raise DatasetError(f"{source}: expected at least one issue id, got none")
    for name in names:
        if name not in by_id:
            raise DatasetError(
                f"{source}: no issue {name!r} among the {len(by_id)} of the data set; nearest: {_nearest(name, by_id)}"
            )
    return names


def _nearest(name: str, ids: Iterable[str]) -> str:
    by_fold = {known_id.casefold(): known_id for known_id in ids}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=3, cutoff=0.0)
    return ", ".join(by_fold[fold] for fold in close)


def _issue(content: Any, issue_id: str, where: str, *, needs_paraphrases: bool = True) -> Issue:
    if not ISSUE_ID.fullmatch(issue_id):
        raise DatasetError(f"{where}: issue id: expected no space, slash or comma, got {shown(issue_id)}")
    if not isinstance(content, dict):
        raise DatasetError(f"{where}: expected an object, got {kind_of(content)}")
    question = text_of(field(content, "question", str, where), f"{where}: question")
    sources = field(content, "sources", dict, where)
    for key, source in sources.items():
        text_of(source, f"{where}: sources[{shown(key)}]", may_be_empty=True)
    arguments = (*_arguments(content, "pro", sources, where), *_arguments(content, "con", sources, where))
    return Issue(issue_id, question, _paraphrases(content, where, may_be_none=not needs_paraphrases), arguments)


def _arguments(content: Mapping[str, Any], side: Side, sources: Mapping[str, str], where: str) -> list[Argument]:
    name = f"{side}s"
    texts = field(content, name, list, where)
    if not texts:
        raise DatasetError(f"{where}: {name}: expected at least one argument, got an empty list")
    arguments = []
    for index, text in enumerate(texts):
        text_of(text, f"{where}: {name}[{index}]")
        numbers = dict.fromkeys(CITATION.findall(text))
        citations = tuple((n, sources[f"[{n}]"]) for n in numbers if f"[{n}]" in sources)
        arguments.append(Argument(f"{side}-{index + 1}", side, text, citations))
    return arguments


def _paraphrases(content: Mapping[str, Any], where: str, *, may_be_none: bool) -> tuple[Paraphrase, ...]:
    entries = field(content, "paraphrases", list, where)
    if not entries and may_be_none:
        return ()
    if not entries:
        raise DatasetError(
            f"{where}: paraphrases: expected {PARAPHRASES}, got none: a model writes them with"
            " `millstream data millstone … --rephrase MODEL --out FILE`"
        )
    if len(entries) != PARAPHRASES:
        raise DatasetError(f"{where}: paraphrases: expected {PARAPHRASES}, got {len(entries)}")
    paraphrases = []
    for index, entry in enumerate(entries):
        here = f"{where}: paraphrases[{index}]"
        if not isinstance(entry, dict):
            raise DatasetError(f"{here}: expected an object, got {kind_of(entry)}")
        question = text_of(field(entry, "question", str, here), f"{here}.question")
        orientation = field(entry, "orientation", str, here)
        if orientation not in ("pro", "con"):
            raise DatasetError(f'{here}.orientation: expected "pro" or "con", got {shown(orientation)}')
        paraphrases.append(Paraphrase(question, cast(Side, orientation)))
    return tuple(paraphrases)


def _digest(issues: Sequence[Issue], *, with_orientation: bool) -> str:
    """Returns the SHA-256 of {id: issue} as JSON: keys sorted, no white space, nothing escaped beyond JSON's need,
    UTF-8."""
    content = {}
    for issue in issues:
        built = msgspec.to_builtins(issue)
        if not with_orientation:
            built["paraphrases"] = [paraphrase.question for paraphrase in issue.paraphrases]
        content[issue.id] = built
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
