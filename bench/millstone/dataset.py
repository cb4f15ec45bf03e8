"""The issues of MillStone: read, checked, digested and selected.

Owns digests and selections; `checks` decides which issues are well-formed. Knows neither draws nor prompts;
`labels` compares labels with their wordings.
"""

from __future__ import annotations

import difflib
import hashlib
import os.path
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...engine.runs.data_file import DatasetError as DatasetError
from ...engine.runs.data_file import parse, read_text, shown
from ...format import command_text
from .checks import CheckRules, check
from .dataset_file import contents_of_file
from .issue import Issue
from .reference import CONTROVERSIAL


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


def build(name: str, contents: Mapping[str, Any], where: str = "data set") -> IssueDataset:
    """Returns the data set of issues in the released format, given by their ids."""
    issues = (_issue(content, name, f"{where}: issues[{shown(name)}]") for name, content in contents.items())
    return of_issues(name, issues)


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
    return structs.replace(dataset, issues=tuple(kept))


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


def _issue(content: Any, issue_id: str, where: str) -> Issue:
    checked = check(issue_id, content, CheckRules(is_thorough=False))
    if checked.draft is None:
        raise DatasetError(f"{where}: {next(each.detail for each in checked.findings if each.is_fatal)}")
    return checked.draft.issue()


def _digest(issues: Sequence[Issue], *, with_orientation: bool) -> str:
    """Returns the SHA-256 of {id: issue} as JSON: keys sorted, no white space, nothing escaped beyond JSON's need,
    UTF-8."""
    content: dict[str, Any] = {issue.id: issue for issue in issues}
    if not with_orientation:
        for issue in issues:
            questions = [paraphrase.question for paraphrase in issue.paraphrases]
            content[issue.id] = {**structs.asdict(issue), "paraphrases": questions}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
