"""How `judge` asks other judges about the toy benchmark's kept answers, as an author writes it."""

from collections import defaultdict
from statistics import mean

from msgspec import structs
from toy_benchmark import RIGHT, Answer, judge_call

from millstream.bench.evaluation.door.judgement import Judgement
from millstream.bench.evaluation.door.judging import JudgeScore, Judging
from millstream.bench.evaluation.door.kept_answer import Verdict


class Judged(Judgement, frozen=True, kw_only=True):
    verdict: str | None = None


class Judges(Judging):
    Record, Line, labels = Answer, Judged, ("right", "wrong")

    def __init__(self, own):
        self.own = own

    def judge(self, model, settings):
        return Reader(model)

    def is_judged(self, record):
        return True

    def verdict(self, record):
        return Verdict({True: "right", False: "wrong"}.get(record.right), None)

    def applied(self, record, line):
        return structs.replace(record, judge=line.judge, verdict=line.verdict, right=RIGHT.get(line.verdict))

    def with_verdict(self, record, verdict):
        return structs.replace(record, judge="", right=None if verdict is None else verdict.label == "right")

    def scores(self, records):
        answers = defaultdict(list)
        for record in records:
            answers[record.pair].append(bool(record.right))
        return {pair: {"right": JudgeScore(mean(own), None, None, len(own))} for pair, own in answers.items()}


class Reader:
    def __init__(self, model):
        self.model = model

    def call(self, records, at):
        return judge_call(self.model, records[at])

    async def judged(self, records, at, ask):
        reply = await ask(judge_call(self.model, records[at]), role="judge")
        return Judged(verdict=reply.text)
