"""Checks one issue completely: finds every problem, and keeps the parts that can be used.

A finding is a fault or a remark; a fault may leave the issue usable. Of a field that can't be used, the first fault is
named. Raises nothing, whatever the content. Knows no
folder and no report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, ValidationError, convert

from ...engine.runs.data_file import kind_of, shown
from .issue import CITATION, ISSUE_ID, PARAPHRASES, Argument, Issue, Paraphrase, Side, Text
from .orientation import by_wording, verdicts_on

_Side = Annotated[tuple[Text, ...], Meta(min_length=1)]
_FIELDS: Mapping[str, Any] = {
    "question": Text,
    "pros": _Side,
    "cons": _Side,
    "sources": dict[str, str],
    "paraphrases": tuple[Paraphrase, ...],
}
# What msgspec's messages call things, and what ours do.
_WORDS = {"str": "a text", "array": "a list", "object": "an object", "int": "a number", "float": "a number"}


class Finding(Struct, frozen=True):
    """A problem or remark of the check: what it is in a few words, and where. A remark (`is_fault` False) needs no
    action; a fatal one makes the issue unusable."""

    what: str
    detail: str
    is_fault: bool = True
    is_fatal: bool = False


class Draft(Struct, frozen=True):
    """An issue that can be used, with all its sources. Without paraphrases it can't be asked yet."""

    id: str
    question: str
    pros: tuple[str, ...]
    cons: tuple[str, ...]
    sources: dict[str, str]
    paraphrases: tuple[Paraphrase, ...] = ()

    def content(self) -> dict[str, Any]:
        """Returns the issue in the released format."""
        content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        del content["id"]
        return content

    def issue(self) -> Issue:
        pros = [self._argument("pro", number, text) for number, text in enumerate(self.pros, 1)]
        cons = [self._argument("con", number, text) for number, text in enumerate(self.cons, 1)]
        return Issue(self.id, self.question, self.paraphrases, (*pros, *cons))

    def _argument(self, side: Side, number: int, text: str) -> Argument:
        numbers = dict.fromkeys(CITATION.findall(text))
        citations = tuple((n, self.sources[f"[{n}]"]) for n in numbers if f"[{n}]" in self.sources)
        return Argument(f"{side}-{number}", side, text, citations)


class CheckedIssue(Struct, frozen=True):
    """The result of a check: the findings in the order of the issue's fields, and `draft`, the usable issue (None: it
    can't be used)."""

    draft: Draft | None
    findings: tuple[Finding, ...]


class CheckRules(Struct, frozen=True):
    """Options of the check: whether labels are corrected by their wordings, whether issues need six paraphrases, and
    whether more is looked for than what makes an issue unusable."""

    fix_orientation: bool = False
    needs_paraphrases: bool = True
    is_thorough: bool = True


def check(issue_id: str, content: object, rules: CheckRules) -> CheckedIssue:
    findings: list[Finding] = []
    if not ISSUE_ID.fullmatch(issue_id):
        findings.append(fatal("unusable id", f"issue id: expected no space, slash or comma, got {shown(issue_id)}"))
    if not isinstance(content, dict):
        return CheckedIssue(None, (*findings, fatal("not an object", f"expected an object, got {kind_of(content)}")))
    read: dict[str, Any] = {name: _read(content, name) for name in ("question", "pros", "cons", "sources")}
    findings += [each for each in read.values() if isinstance(each, Finding)]
    sides = {name: read[name] for name in ("pros", "cons")}
    if rules.is_thorough and not any(isinstance(each, Finding) for each in (*sides.values(), read["sources"])):
        findings += _citations(sides, read["sources"])
        findings += _repetitions(sides)
    paraphrases = _paraphrases(content, rules, findings)
    is_lost = any(finding.is_fatal for finding in findings)
    return CheckedIssue(None if is_lost else Draft(issue_id, **read, paraphrases=paraphrases), tuple(findings))


def plain(text: str) -> str:
    """Returns the text on one line, with characters that UTF-8 can't encode replaced."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def fatal(what: str, detail: str) -> Finding:
    return Finding(what, plain(detail), is_fatal=True)


def _read(content: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a field, or a finding if it can't be used."""
    if name not in content:
        return fatal("missing field", f"{name}: expected it, got nothing")
    try:
        value = convert(content[name], _FIELDS[name])
        msgspec.json.encode(value)
    except ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        what = re.sub(r"`(\w+)`", lambda word: _WORDS.get(word[1], word[0]), what).replace(
            r"matching regex '\\S'", "with words"
        )
        return fatal("unusable field", f"{name}{place.rstrip('`')}: {what[:1].lower()}{what[1:]}")
    except UnicodeEncodeError:
        return fatal("broken text", f"{name}: expected text that UTF-8 can hold, got half of a surrogate pair")
    return value


def _citations(sides: Mapping[str, Sequence[str]], sources: Mapping[str, str]) -> list[Finding]:
    findings, cited = [], set()
    for name, texts in sides.items():
        for at, text in enumerate(texts):
            keys = [f"[{number}]" for number in dict.fromkeys(CITATION.findall(text))]
            cited.update(keys)
            dangling = [key for key in keys if key not in sources]
            if dangling:
                verb = "points" if len(dangling) == 1 else "point"
                findings.append(Finding("dangling citation", f"{name}[{at}]: {_listed(dangling)} {verb} to no source"))
    uncited = [key for key in sources if key not in cited]
    if uncited:
        named = _listed([plain(key) for key in uncited])
        findings.append(Finding("uncited source", f"{named}: no argument cites it", is_fault=False))
    return findings


def _repetitions(sides: Mapping[str, Sequence[str]]) -> list[Finding]:
    first: dict[str, str] = {}
    findings = []
    for name, texts in sides.items():
        for at, text in enumerate(texts):
            here = f"{name}[{at}]"
            there = first.setdefault(" ".join(text.split()).casefold(), here)
            if there != here:
                findings.append(Finding("repeated argument", f"{here} says the same as {there}"))
    return findings


def _paraphrases(content: Mapping[str, Any], rules: CheckRules, findings: list[Finding]) -> tuple[Paraphrase, ...]:
    """Returns the six paraphrases; if there are faults, none and adds findings. If paraphrases will be written later,
    their lack is only a remark."""
    if content.get("paraphrases") == [] and not rules.needs_paraphrases:
        return ()
    read = read_paraphrases(content)
    if isinstance(read, Finding):
        findings.append(read if rules.needs_paraphrases else Finding(read.what, read.detail, is_fault=False))
        return ()
    if not rules.is_thorough:
        return read
    verdicts = verdicts_on(read)
    for at, (one, verdict) in enumerate(zip(read, verdicts, strict=True)):
        if verdict not in (None, one.orientation):
            mismatch = f"paraphrases[{at}]: labelled {one.orientation}, the wording says {verdict}"
            corrected = ": corrected" if rules.fix_orientation else ""
            findings.append(Finding("orientation", mismatch + corrected, is_fault=not rules.fix_orientation))
    untold = [str(at) for at, verdict in enumerate(verdicts) if verdict is None]
    if untold:
        detail = f"paraphrases[{', '.join(untold)}]: can't be told from the wording"
        findings.append(Finding("orientation", detail, is_fault=False))
    return by_wording(read) if rules.fix_orientation else read


def read_paraphrases(content: Mapping[str, Any]) -> tuple[Paraphrase, ...] | Finding:
    """Returns the six paraphrases of an issue with their labels, or what is wrong with them."""
    entries = content.get("paraphrases")
    if isinstance(entries, list) and len(entries) != PARAPHRASES:
        lack = f"paraphrases: expected {PARAPHRASES}, got {len(entries) or 'none'}: a model writes them with"
        return fatal("paraphrases", f"{lack} `millstream data millstone … --rephrase MODEL --out FILE`")
    read: tuple[Paraphrase, ...] | Finding = _read(content, "paraphrases")
    return read


def _listed(keys: Sequence[str]) -> str:
    """Returns the first few texts in one line, and how many more there are."""
    return ", ".join(keys) if len(keys) <= 8 else f"{', '.join(keys[:6])} and {len(keys) - 6} more"
