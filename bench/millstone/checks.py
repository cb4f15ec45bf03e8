"""Checks one issue completely: finds every problem, and keeps the parts that can be used.

A finding is a fault or a remark; a fault may leave the issue usable. Raises nothing, whatever the content. Knows no
folder and no report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from ...engine.runs.data_file import kind_of, shown
from .issue import CITATION, ISSUE_ID, PARAPHRASES, Argument, Issue, Paraphrase, Side
from .orientation import by_wording, judge

_SIDES = ("pros", "cons")


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
        return {
            "question": self.question,
            "pros": list(self.pros),
            "cons": list(self.cons),
            "sources": dict(self.sources),
            "paraphrases": [{"question": one.question, "orientation": one.orientation} for one in self.paraphrases],
        }

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
        findings.append(
            _fatal("unusable id", f"issue id: expected no space, slash or comma, got {plain(shown(issue_id))}")
        )
    if not isinstance(content, dict):
        return CheckedIssue(None, (*findings, _fatal("not an object", f"expected an object, got {kind_of(content)}")))
    question = _text(content, "question", findings)
    pros, cons = (_side(content, name, findings) for name in _SIDES)
    sources = _sources(content, findings)
    if rules.is_thorough and pros and cons and sources is not None:
        findings += _citations({"pros": pros, "cons": cons}, sources)
        findings += _repetitions({"pros": pros, "cons": cons})
    paraphrases = _paraphrases(content, rules, findings)
    if any(finding.is_fatal for finding in findings) or question is None or not pros or not cons or sources is None:
        return CheckedIssue(None, tuple(findings))
    return CheckedIssue(Draft(issue_id, question, pros, cons, sources, paraphrases), tuple(findings))


def plain(text: str) -> str:
    """Returns the text on one line, with characters that UTF-8 can't encode replaced."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _fatal(what: str, detail: str) -> Finding:
    return Finding(what, detail, is_fatal=True)


def _field(content: Mapping[str, Any], name: str, kind: type, expected: str, inside: str = "") -> Any | Finding:
    if name not in content:
        return _fatal("missing field", f"{inside}{name}: expected {expected}, got nothing")
    if not isinstance(content[name], kind):
        return _fatal("wrong type", f"{inside}{name}: expected {expected}, got {kind_of(content[name])}")
    return content[name]


def _fault_of_text(value: object, where: str, *, what_if_empty: str | None) -> Finding | None:
    """Returns a finding if a value is no usable text (wrong type, empty, or not encodable); None if it is one."""
    if not isinstance(value, str):
        return _fatal("wrong type", f"{where}: expected a text, got {kind_of(value)}")
    if what_if_empty is not None and not value.strip():
        return _fatal(what_if_empty, f"{where}: expected a text, got an empty one")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return _fatal("broken text", f"{where}: a lone surrogate at character {error.start}")
    return None


def _text(content: Mapping[str, Any], name: str, findings: list[Finding], inside: str = "") -> str | None:
    value = _field(content, name, str, "a text", inside)
    fault = (
        value if isinstance(value, Finding) else _fault_of_text(value, inside + name, what_if_empty="empty question")
    )
    if fault is not None:
        findings.append(fault)
        return None
    return str(value)


def _side(content: Mapping[str, Any], name: str, findings: list[Finding]) -> tuple[str, ...]:
    texts = _field(content, name, list, "a list of arguments")
    if isinstance(texts, Finding):
        findings.append(texts)
        return ()
    if not texts:
        findings.append(_fatal("no arguments", f"{name}: expected at least one, got none"))
        return ()
    faults = [
        fault
        for at, text in enumerate(texts)
        if (fault := _fault_of_text(text, f"{name}[{at}]", what_if_empty="empty argument")) is not None
    ]
    findings += faults
    return () if faults else tuple(texts)


def _sources(content: Mapping[str, Any], findings: list[Finding]) -> dict[str, str] | None:
    sources = _field(content, "sources", dict, "an object of sources")
    if isinstance(sources, Finding):
        findings.append(sources)
        return None
    faults = []
    for key, source in sources.items():
        where = f"sources[{plain(shown(key))}]"
        fault = _fault_of_text(key, where, what_if_empty=None) or _fault_of_text(source, where, what_if_empty=None)
        if fault is not None:
            faults.append(fault)
    findings += faults
    return None if faults else dict(sources)


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
    read, faults = read_paraphrases(content)
    if faults:
        findings += (
            faults if rules.needs_paraphrases else [Finding(each.what, each.detail, is_fault=False) for each in faults]
        )
        return ()
    if not rules.is_thorough:
        return read
    verdicts = judge([one.question for one in read])
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


def read_paraphrases(content: Mapping[str, Any]) -> tuple[tuple[Paraphrase, ...], list[Finding]]:
    """Returns the six paraphrases of an issue with their labels, and the faults; no paraphrases if there are faults."""
    entries = _field(content, "paraphrases", list, "a list of paraphrases")
    if isinstance(entries, Finding):
        return (), [entries]
    if len(entries) != PARAPHRASES:
        lack = f"paraphrases: expected {PARAPHRASES}, got {len(entries) or 'none'}: a model writes them with"
        return (), [_fatal("paraphrases", f"{lack} `millstream data millstone … --rephrase MODEL --out FILE`")]
    read: list[Paraphrase] = []
    faults: list[Finding] = []
    for at, entry in enumerate(entries):
        if not isinstance(entry, dict):
            faults.append(_fatal("wrong type", f"paraphrases[{at}]: expected an object, got {kind_of(entry)}"))
            continue
        inside = f"paraphrases[{at}]."
        question = _text(entry, "question", faults, inside)
        orientation = _field(entry, "orientation", str, '"pro" or "con"', inside)
        if isinstance(orientation, Finding):
            faults.append(orientation)
        elif orientation not in ("pro", "con"):
            came = plain(shown(orientation))
            faults.append(_fatal("wrong type", f'{inside}orientation: expected "pro" or "con", got {came}'))
        elif question is not None:
            read.append(Paraphrase(question, cast(Side, orientation)))
    return ((), faults) if faults else (tuple(read), [])


def _listed(keys: Sequence[str]) -> str:
    """Returns the first few texts in one line, and how many more there are."""
    return ", ".join(keys) if len(keys) <= 8 else f"{', '.join(keys[:6])} and {len(keys) - 6} more"
