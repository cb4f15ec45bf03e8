"""Panels of judges with known verdicts, written as rows of letters or grades."""

from __future__ import annotations

from millstream.bench.evaluation.door.judging import JudgeScore
from millstream.bench.evaluation.door.kept_answer import Key, Verdict
from millstream.bench.evaluation.reading.judging.panel import JudgedAnswer, Panel
from millstream.engine.pairs import Pair

JUDGES = ("own", "two", "three")


def panel(*rows: str, judges: tuple[str, ...] = JUDGES, labels: tuple[str, ...] = ("a", "b")) -> Panel:
    """Each row has a letter a judge: its label, `-` for none judged, `?` for a reply that can't be read."""
    answers = [
        JudgedAnswer(
            Key(Pair("lab/m", None), f"c/{number}"),
            {
                judge: Verdict(None if letter == "?" else letter, None)
                for judge, letter in zip(judges, row, strict=True)
                if letter != "-"
            },
        )
        for number, row in enumerate(rows)
    ]
    scores = {
        judge: {Pair("lab/m", None): {"score": JudgeScore(0.5, 0.25, 0.75, 4)}} for judge in (*judges, "majority")
    }
    by_all = sum(len(answer.verdicts) == len(judges) for answer in answers)
    return Panel(judges, answers, labels, scores, by_all)


def graded(*rows: tuple[float | None, ...]) -> Panel:
    answers = [
        JudgedAnswer(Key(Pair("lab/m", None), f"{at}"), {j: Verdict(None, g) for j, g in zip(JUDGES, row, strict=True)})
        for at, row in enumerate(rows)
    ]
    return Panel(JUDGES, answers, (), {}, len(answers))
