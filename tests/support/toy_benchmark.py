"""A benchmark of one's own as an author writes it, in three forms: `sums`, one call an item; `twins`, each question in
two wordings, scored as pairs; `doubts`, conversations that depend on their answers and have a judge."""

import os
from collections import Counter, defaultdict
from statistics import mean
from typing import Annotated

from msgspec import Struct, structs

import millstream as ms

RIGHT = {"yes": True, "no": False}


class Options(ms.SharedOptions, frozen=True, kw_only=True):
    offset: Annotated[int, ms.Option(metavar="N", help="the first item")] = 0
    limit: Annotated[int, ms.Option(metavar="N", help="how many items")] = 8
    trials: Annotated[int, ms.Option(metavar="N", help="how often each is asked")] = 1
    same: Annotated[bool, ms.Option(help="every item has the same question")] = False
    judge: Annotated[str, ms.Option(metavar="PROVIDER/MODEL", help="who reads the answers of doubts")] = "lab/judge"


class Readings(Struct, frozen=True):
    lenient: Annotated[bool, ms.Option(help="an answer without a number is right")] = False


class Answer(ms.Record, frozen=True, kw_only=True):
    number: int = 0
    right: bool | None = None
    verdict: str | None = None
    judge: str = ""


def judge_call(judge, record):
    return ms.Call(judge, f"Answer {record.step}: {record.number} + 10 is {record.text}. Say yes or no.", 0.0, 5)


class Sums(ms.ItemBenchmark):
    name, title, Options, Readings, Record = "sums", "Sums", Options, Readings, Answer

    def items(self, options):
        for n in range(options.offset, options.offset + options.limit):
            for trial in range(options.trials):
                data = (0 if options.same else n, trial)
                yield ms.Item(f"s{n}.{trial}", data, group="odd" if n % 2 else "even", of=f"s{n}")

    def call(self, item, options, pair):
        (n, trial), more = item.data, {"max_tokens": options.max_tokens, "reasoning_effort": pair.effort}
        return ms.Call(pair.model, f"What is {n} + 10?", pair.temperature, trial=trial, **more)

    def record(self, item, outcome, options):
        text, number = outcome.reply.text, item.data[0]
        if os.environ.get("TOY_DEFECT") == item.id:
            raise IndexError("by hand")
        return Answer(number=number, right=text == str(number + 10) if text.isdigit() else None)

    def check(self, record, item):
        right = record.text == str(record.number + 10)
        return None if record.right in (None, right) else f"right: expected {right}, got {record.right}"

    def score_records(self, records, readings, specification):
        answers, silent, models = defaultdict(list), Counter(), {}
        if os.environ.get("TOY_DEFECT") == "score":
            raise ValueError("by hand")
        for record in records:
            silent[str(record.pair)] += record.right is None
            right = readings.lenient if record.right is None else record.right
            answers[str(record.pair)].append((record.item, right))
        for model, own in answers.items():
            found = ms.interval([right for _, right in own], [item for item, _ in own], within=(0, 1), of="items")
            models[model] = {"score": found.mean, "ci95": [found.low, found.high], "answers": len(own)}
        unmeasured = [f"{model}: {count} answers are not read" for model, count in silent.items() if count]
        return {"models": models, "unmeasured": [] if readings.lenient else unmeasured}


class Twins(Sums):
    name, title = "twins", "Twins"

    def items(self, options):
        for n in range(options.offset, options.offset + options.limit):
            yield from (ms.Item(f"{wording}{n}", (n, 0), group=f"pair {n}") for wording in "ab")

    def call(self, item, options, pair):
        call = super().call(item, options, pair)
        return structs.replace(call, input=f"Please. {call.input}") if item.id[0] == "b" else call

    def score_records(self, records, readings, specification):
        pairs = defaultdict(lambda: defaultdict(list))
        for record in records:
            pairs[str(record.pair)][record.group].append(record.right)
        alike = {model: [len({*both}) == 1 for both in own.values() if len(both) == 2] for model, own in pairs.items()}
        return {"models": {model: {"score": mean(each)} for model, each in alike.items() if each}}


class Doubts(Sums):
    name, title, unit = "doubts", "Doubts", "answer"

    def items(self, options):
        return (ms.Item(f"d{n}", n, steps=3) for n in range(options.offset, options.offset + options.limit))

    def others(self, options):
        return {options.judge: 5}

    async def run(self, item, ask, done):
        asked = [ms.Message("user", f"What is {item.data} + 10?")]
        more = {"max_tokens": ask.options.max_tokens, "reasoning_effort": ask.pair.effort}
        for step in range(1, 4):
            if step not in done:
                text = (await ask(ms.Call(ask.pair.model, tuple(asked), ask.pair.temperature, **more))).text
                record = Answer(step=step, number=item.data, text=text, judge=ask.options.judge)
                verdict = (await ask(judge_call(record.judge, record), role="judge")).text
                yield structs.replace(record, verdict=verdict, right=RIGHT.get(verdict))
            text = done[step].text if step in done else text
            doubt = f"Doubt {step}: not {text}. What is {item.data} + 10?"
            asked += [ms.Message("assistant", text), ms.Message("user", doubt)]

    def label(self, record):
        choices = ms.LabelChoice("y", "right"), ms.LabelChoice("n", "wrong")
        readings = {} if record.right is None else {"judge": "right" if record.right else "wrong"}
        return ms.Label(text=record.text, choices=choices, readings=readings, question=f"{record.number} + 10?")

    def judging(self, manifest):
        from toy_judging import Judges

        return Judges(manifest["options"][self.name]["judge"])


SUMS, TWINS, DOUBTS = Sums(), Twins(), Doubts()
