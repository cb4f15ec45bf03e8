"""Finds from a paraphrase's wording which side answering A means.

Owns the parsing of the six templates and the comparison of the positions that they name. Returns None where the wording
is not clear: a guess would be worse than no answer. Knows no files and no reports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from .issue import Paraphrase, Side

_QUOTES = str.maketrans(
    {**dict.fromkeys("“”„‟«»″〝〞", '"'), **dict.fromkeys("‘’‚‛′`´", "'"), "\N{NO-BREAK SPACE}": " "}
)
# The letters are capitals, to tell A from the article; "A for-profit school" has no space after "for". Quotes before a
# letter belong to it. `re` finds a first character fast, so what is before it is looked at from behind it.
_LETTER = re.compile(
    r"[\"'(<AB](?<!\w.)(?:(?<=[AB])|(?<=[\"'(<])[\"'(<]*\b[AB])(?<=([AB]))\b[\"')>]*\s+(?:if|for|when)\s"
)
# A dot after a single capital belongs to an abbreviation, as in "the U.S. Senate".
_SENTENCE_END = re.compile(r"[.?!](?<!\b[A-Z].)[\"')]*\s+(?=[\"'(]*[A-Z0-9])")
_CLAUSE_END = re.compile(r"[.;?!]|,\s*(?:and\b|or\b|[\"'(<]*[AB]\b)|\s(?:and|or)\s+$")
_NAMED = re.compile(r"\b(in favou?r|against)\b", re.IGNORECASE)
_ONE = r"(?i:position|statement|option)\s+(?:1|[Oo]ne|I|A)\b"
_TWO = r"(?i:position|statement|option)\s+(?:2|[Tt]wo|II|B)\b"
_FIRST = re.compile(rf"\b(?:(?i:first|former)\b|{_ONE})")
_SECOND = re.compile(rf"\b(?:(?i:second|latter)\b|{_TWO})")
_NUMBERED = re.compile(rf"\b{_ONE}(?P<first>.*?)\b{_TWO}(?P<second>.*)", re.DOTALL)
_VERSUS = re.compile(r"\s(?:versus|vs\.?)\s", re.IGNORECASE)
_SPEAKS = re.compile(
    r"[\s:,]*(?:(?:is|states|says|asserts|holds|argues|claims|maintains|contends|believes)\b)?[\s:,]*(?:that\b)?",
    re.IGNORECASE,
)
_WORD, _NOT = re.compile(r"\w+"), re.compile(r"n't\b")
_JOINED = re.compile(r"\b(?:and|while|whereas|but)[\s,;.\"']*$")
_OPPOSING = re.compile(r"\b(?:oppos|reject|disagree)\w*\b", re.IGNORECASE)
_DENYING = re.compile(r"\b(?:not|never|neither|nor)\b|n't\b", re.IGNORECASE)
_SUPPORTED = re.compile(r"\b(support|oppose)\b(.*)", re.IGNORECASE | re.DOTALL)
_GENERIC = re.compile(
    r"(?:it|this|that|(?:(?:the|this|that)\s+)?(?:idea|issue|measure|motion|policy|position|proposal|proposition|question))?",
    re.IGNORECASE,
)
_ISSUE_NAMED = re.compile(r"\b(?:issue|proposal|question|topic)\s*:\s*(.+?)[\s.?!]*$", re.IGNORECASE | re.DOTALL)
_NAMED_AFTER = re.compile(r"\s(?:is|are|as)\s+the\s+position\s+(in favou?r|against)\b", re.IGNORECASE)
_NAMED_BEFORE = re.compile(r"(?<!is )(?<!are )(?<!as )\bthe\s+position\s+(in favou?r|against)\b", re.IGNORECASE)

_IDLE = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on for at by with from as is are was were be been being do does did has have had having "
        "will would shall should can could may might must that this these those it its they their we our there and "
        "or position view",
    )
)
_NEGATIONS = frozenset({"not", "no", "never", "nor", "cannot"})


class _Instruction(NamedTuple):
    """The parts of a paraphrase: the text before the instruction, and the clauses that say when to answer A and when
    B."""

    body: str
    a: str
    b: str


class _Statement(NamedTuple):
    """The meaning of a sentence, for comparison: the stems of its words, and whether it is negated."""

    stems: frozenset[str]
    is_negated: bool


class _Positions(NamedTuple):
    pro: _Statement
    con: _Statement


def judge(questions: Sequence[str]) -> tuple[Side | None, ...]:
    """Returns, for each of an issue's paraphrases, the side that answering A means; None where that is not clear.

    Where A is a first or second statement, which of the two is in favor follows from the paraphrases that say so, and
    then from those already decided.
    """
    read = [_instruction(question.translate(_QUOTES)) for question in questions]
    verdicts: list[Side | None] = [None if one is None else _by_name(one) for one in read]
    named = [pair for one in read if one is not None and (pair := _named_positions(one.body)) is not None]
    pairs = [None if one is None or verdicts[at] else _pair(one) for at, one in enumerate(read)]
    # Each pass uses the one before it: a wording that repeats the named positions explains one that doesn't.
    for _ in questions:
        learned: list[_Positions] = []
        for at, pair in enumerate(pairs):
            if pair is None or verdicts[at] is not None:
                continue
            order = _order(pair, named)
            is_first = None if (one := read[at]) is None else _is_first(one)
            if order is None or is_first is None:
                continue
            verdicts[at] = "pro" if order == is_first else "con"
            learned.append(pair if order else _Positions(pair.con, pair.pro))
        if not learned:
            break
        named += learned
    return tuple(verdicts)


@lru_cache(1024)
def verdicts_on(paraphrases: tuple[Paraphrase, ...]) -> tuple[Side | None, ...]:
    """Returns the same for an issue's paraphrases, read once."""
    return judge([one.question for one in paraphrases])


def by_wording(paraphrases: tuple[Paraphrase, ...]) -> tuple[Paraphrase, ...]:
    """Returns an issue's paraphrases with the labels that their wordings imply; an unclear wording keeps its label."""
    verdicts = verdicts_on(paraphrases)
    return tuple(
        Paraphrase(one.question, verdict or one.orientation) for one, verdict in zip(paraphrases, verdicts, strict=True)
    )


def clause_of_a(question: str) -> str:
    """Returns the words that say when to answer A; empty if there are none."""
    text = question.translate(_QUOTES)
    for match, clause in _after(list(_LETTER.finditer(text)), text):
        if match[1] == "A":
            end = _CLAUSE_END.search(clause)
            words = clause if end is None else clause[: end.start()]
            return " ".join(f"{match[0].strip()} {words}".split()).rstrip(" ,;:")
    return ""


def _instruction(text: str) -> _Instruction | None:
    """Returns the parts of a paraphrase; None if it has no single instruction for A and B."""
    matches = list(_LETTER.finditer(text))
    letters = [match[1] for match in matches]
    if not matches or len(matches) > 2 or len(set(letters)) < len(letters):
        return None
    clauses = {"A": "", "B": ""}
    for match, clause in _after(matches, text):
        end = _CLAUSE_END.search(clause)
        clauses[match[1]] = clause[: end.start()] if end is not None else clause
    before = text[: matches[0].start()]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, matches[0].end())]
    return _Instruction(before[: ends[-1]] if ends else before, clauses["A"], clauses["B"])


def _after(matches: Sequence[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    """Returns each match with the text from its end to the next one."""
    ends = [match.start() for match in matches[1:]] + [len(text)]
    return [(match, text[match.end() : end]) for match, end in zip(matches, ends, strict=False)]


def _by_name(one: _Instruction) -> Side | None:
    """Returns the side of A if a clause names it ("in favor", "against"); None if none does, or if the clauses
    disagree."""
    a, b = _names(one.a), _names(one.b)
    if len(a) > 1 or len(b) > 1:
        return None
    a_side, b_side = _side_of(one.a, a), _side_of(one.b, b)
    if a_side is None and b_side is None:
        return _by_support(one) if not a and not b else None
    if (a and a_side is None) or (b and b_side is None) or a_side == b_side:
        return None
    if a_side is not None:
        return a_side
    return ("con" if b_side == "pro" else "pro") if not one.a else None


def _names(clause: str) -> set[str]:
    return {match.lower().replace("favour", "favor") for match in _NAMED.findall(clause)}


def _side_of(clause: str, names: Collection[str]) -> Side | None:
    """Returns the side that a clause with "in favor" or "against" means; None if it is not clear. To oppose the
    position in favor is to be against."""
    before = _NAMED.split(clause, maxsplit=1)[0]
    if not names or _DENYING.search(before):
        return None
    return "pro" if ("in favor" in names) != bool(_OPPOSING.search(before)) else "con"


class _Support(NamedTuple):
    """Whether A supports something (or B opposes it), and its words; empty words if the clauses name nothing
    themselves."""

    is_by_a: bool
    what: str


def _support(one: _Instruction) -> _Support | None:
    """Returns what one letter supports and the other opposes; None if the clauses don't say that."""
    if _DENYING.search(one.a + one.b):
        return None
    a, b = (_SUPPORTED.search(clause) for clause in (one.a, one.b))
    if (a is None and one.a) or (b is None and one.b) or (a is None and b is None):
        return None
    verbs = [None if match is None else match[1].lower() for match in (a, b)]
    whats = {what for match in (a, b) if match is not None and (what := _what(match[2]))}
    if verbs[0] == verbs[1] or len(whats) > 1:
        return None
    return _Support(verbs[0] == "support" or verbs[1] == "oppose", next(iter(whats), ""))


def _what(text: str) -> str:
    text = text.strip(" \t\n,;:.!?\"'()")
    return "" if _GENERIC.fullmatch(text) else text.casefold()


def _by_support(one: _Instruction) -> Side | None:
    """Returns the side of A if it supports or opposes the issue itself and the wording names the position in favor of
    it; else None."""
    support = _support(one)
    if support is None or support.what or not one.b or _named_positions(one.body) is None:
        return None
    return "pro" if support.is_by_a else "con"


def _is_first(one: _Instruction) -> bool | None:
    """Returns whether A means the first of two statements; None if that is not clear."""
    a, b = _ordinal(one.a), _ordinal(one.b)
    if a is None and b is None and (support := _support(one)) is not None:
        return support.is_by_a
    if a is not None and b is not None:
        return a if a != b else None
    if a is None and b is not None:
        return not b if not one.a else None
    return a


def _ordinal(clause: str) -> bool | None:
    is_first, is_second = _FIRST.search(clause) is not None, _SECOND.search(clause) is not None
    return is_first if is_first != is_second else None


def _named_positions(body: str) -> _Positions | None:
    """Returns the statements that the body calls the position in favor and the position against; None if it doesn't
    name both."""
    folded = body.casefold()
    # Faster than the searches below, which also take letters for i that `casefold` leaves.
    if "favo" not in folded or "nst" not in folded:
        return None
    texts: dict[str, str] = {}
    matches = list(_NAMED_AFTER.finditer(body))
    if matches:
        # The issue stands before the first position, in sentences of its own.
        before = body[: matches[0].start()].partition(":")[2] or body[: matches[0].start()]
        texts[matches[0][1].lower()] = _SENTENCE_END.split(before)[-1]
        for previous, match in pairwise(matches):
            texts[match[1].lower()] = body[previous.end() : match.start()]
    else:
        matches = list(_NAMED_BEFORE.finditer(body))
        texts |= {match[1].lower(): text for match, text in _after(matches, body)}
    pro, con = texts.get("in favor", texts.get("in favour")), texts.get("against")
    return _Positions(_statement(pro), _statement(con)) if len(matches) == 2 and pro and con else None


def _pair(one: _Instruction) -> _Positions | None:
    """Returns two statements in their order in the text, the first as `pro`; None if there are not two."""
    numbered = _NUMBERED.search(one.body)
    if numbered is not None:
        return _Positions(_statement(_JOINED.sub("", numbered["first"])), _statement(numbered["second"]))
    # The issue itself may contain "versus": the statements begin after the last colon.
    statements = _VERSUS.split(one.body.rpartition(":")[2]) if ":" in one.body else []
    if len(statements) == 2:
        return _Positions(_statement(statements[0]), _statement(statements[1]))
    return _supported_pair(one)


def _supported_pair(one: _Instruction) -> _Positions | None:
    """Returns the supported statement and its negation; None if nothing is supported."""
    support = _support(one)
    if support is None:
        return None
    issue = _ISSUE_NAMED.search(one.body)
    what = _statement(support.what or (issue[1] if issue is not None else ""))
    return _Positions(what, what._replace(is_negated=not what.is_negated)) if what.stems else None


def _statement(text: str) -> _Statement:
    said = text[match.end() :] if (match := _SPEAKS.match(text)) is not None else text
    words = {*_WORD.findall(_NOT.sub(" not", said).casefold())}
    return _Statement(frozenset(map(_stem, words - _IDLE - _NEGATIONS)), not words.isdisjoint(_NEGATIONS))


@lru_cache(1024)
def _stem(word: str) -> str:
    """Returns the word without its ending, for comparisons: allowing, allowed, allows and allow become the same."""
    for ending in ("ing", "ied", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


# Words that reverse a sentence without a negation; any other missing word may have been left out.
_REVERSING = frozenset(
    _stem(word)
    for word in re.findall(
        r"\w+",
        "abolish against avoid ban bar block cease deny discontinue dismantle eliminate end fail forbid forbidden halt "
        "illegal lack limit neither oppose outlaw prevent prohibit reduce refuse reject remove repeal restrict scrap "
        "stop unable unacceptable unlawful unnecessary without wrong",
    )
)


def _order(pair: _Positions, named: Iterable[_Positions]) -> bool | None:
    """Returns whether the pair's first statement is the one in favor; None if the named positions don't tell, or
    contradict each other."""
    hints = {hint for positions in named if (hint := _compared(pair, positions)) is not None}
    return hints.pop() if len(hints) == 1 else None


def _compared(pair: _Positions, positions: _Positions) -> bool | None:
    first, second = pair
    pro, con = positions
    straight, crossed = first == pro or second == con, first == con or second == pro
    if straight != crossed:
        return straight
    return _by_words(pair, positions) if not straight else None


def _by_words(pair: _Positions, positions: _Positions) -> bool | None:
    """Returns whether the pair's first statement is the one in favor, judged by the words that only one statement and
    only one position have; None if they don't tell."""
    first, second = pair
    pro, con = positions
    only_first, only_second = first.stems - second.stems, second.stems - first.stems
    only_pro, only_con = pro.stems - con.stems, con.stems - pro.stems
    hints: set[bool] = set()
    for statement, only_here, is_first in ((first, only_first, True), (second, only_second, False)):
        for position, only_there, is_pro in ((pro, only_pro, True), (con, only_con, False)):
            if only_here & only_there:
                if statement.is_negated != position.is_negated:
                    return None
                hints.add(is_first == is_pro)
    if hints:
        return hints.pop() if len(hints) == 1 else None
    return _by_negation(pair, positions)


def _by_negation(pair: _Positions, positions: _Positions) -> bool | None:
    """Returns whether the pair's first statement is the one in favor, judged by negation alone: it is if it and `pro`
    are both negated or both not. None unless exactly one of each two is negated and both speak of the same thing."""
    first, second = pair
    pro, con = positions
    if first.is_negated == second.is_negated or pro.is_negated == con.is_negated:
        return None
    stems, meant = first.stems | second.stems, pro.stems | con.stems
    if not (stems <= meant or meant <= stems) or not stems or not meant or (stems ^ meant) & _REVERSING:
        return None
    return first.is_negated == pro.is_negated
