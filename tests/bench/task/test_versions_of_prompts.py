"""Variants of a prompt and shuffled options: what is asked, kept, scored and proven."""

from __future__ import annotations

import json
from collections import Counter
from csv import DictReader
from pathlib import Path

import pytest
from command_line import CommandLine, Provider, lines_of, scores_of

import millstream as ms
from millstream.bench.task.choices import Choice
from millstream.bench.task.questions import questions_of
from millstream.bench.task.rows import TaskError, TaskRow
from millstream.engine.call import Reply
from millstream.engine.runs.journal import sealed

FILE = """
import millstream as ms

mine = ms.Task(
    data=[{"id": f"r{n}", "n": n, "options": ["red", "green", "blue"], "answer": n % 3} for n in range(12)],
    prompt=PROMPT,
    score=SCORE,
    trials=2,
)
"""
VARIANTS = FILE.replace("PROMPT", '{"plain": "Number {n}?", "polite": "Please: number {n}?"}').replace(
    "SCORE", 'ms.regex("answer to the prompt [0-7]")'
)
SHUFFLED = FILE.replace("PROMPT", '"Which is {n}?\\n{options}"').replace(
    "SCORE", 'ms.choice("{answer}", options="{options}", shuffle=7)'
)


def asked(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    return ("run", "mine.py", "--model", "sim/open", *where, "--out", "run", *more)


def test_every_row_is_asked_in_each_variant_and_variants_are_compared_in_pairs(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(VARIANTS)
    done = cli(*asked(provider))
    assert done.code == 0, done.err
    records = lines_of(tmp_path / "run/records.jsonl")
    assert Counter(record["variant"] for record in records) == {"plain": 24, "polite": 24}
    for record in records:
        assert record["id"] == f"{record['item']}/{record['variant']}/{record['trial']}"
        assert record["prompt"].startswith("Please") == (record["variant"] == "polite")
    assert len({tuple(record["keys"]) for record in records}) == provider.calls() == 48
    entry = scores_of(tmp_path / "run")["mine"]["models"]["sim/open"]
    scored = {name: [r["score"] for r in records if r["variant"] == name] for name in ("plain", "polite")}
    assert {name: found["mean"] for name, found in entry["variants"].items()} == pytest.approx(
        {name: sum(values) / 24 for name, values in scored.items()}
    )
    assert (entry["items"], entry["items_scored"], entry["trials"], entry["answers"]) == (12, 12, 2, 48)
    [pair] = entry["variant_pairs"]
    assert (pair["a"], pair["b"], pair["items"]) == ("plain", "polite", 12)
    assert pair["difference"] == pytest.approx(entry["variants"]["plain"]["mean"] - entry["variants"]["polite"]["mean"])
    told = cli("score", "run").out
    assert "variant" in told and "sim/open: plain minus polite: " in told
    assert cli("verify", "run").out.startswith("ok: 48 records") and cli("report", "run").code == 0
    page = (tmp_path / "run/report.html").read_text()
    # An open table: nothing that stays folded stands before it in its section.
    section = page.split('<section id="task-by-variant"')[1].split("</section>")[0]
    assert "Variants compared" in section and ">polite<" in section and "<details" not in section
    with (tmp_path / "run/tables/task-variant-pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        [row] = DictReader(file)
    assert (row["model"], row["a"], row["b"], row["items"]) == ("sim/open", "plain", "polite", "12")
    written = [row["difference"], row["low"], row["high"], row["p"], row["p_holm"]]
    assert [float(text) for text in written] == pytest.approx(
        [pair["difference"], *pair["ci95"], pair["p"], pair["p_adjusted"]], abs=1e-3
    )
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert set(manifest["specification"]["prompt"]["variants"]) == {"plain", "polite"}
    assert cli("resume", "run").code == 0 and provider.calls() == 48


def test_pass_at_k_takes_the_trials_of_each_variant_apart(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(VARIANTS.replace("trials=2", "trials=3, figures={'pass@2': ms.pass_at(2)}"))
    assert cli(*asked(provider)).code == 0
    right = Counter[tuple[str, str]]()
    for record in lines_of(tmp_path / "run/records.jsonl"):
        right[record["item"], record["variant"]] += record["score"]
    # Of 3 trials of which this many are right, how many of the 3 pairs have a right one.
    expected = sum((0, 2 / 3, 1, 1)[int(count)] for count in right.values()) / len(right)
    figure = scores_of(tmp_path / "run")["mine"]["models"]["sim/open"]["figures"]["pass@2"]
    assert len(right) == 24 and figure["value"] == pytest.approx(expected) and figure["items"] == 12
    pooled = [right[f"r{n}", "plain"] + right[f"r{n}", "polite"] for n in range(12)]
    assert len(set(right.values())) > 1 and max(pooled) > 1


def test_shuffled_options_are_shown_read_back_kept_and_proven(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(SHUFFLED)
    assert cli(*asked(provider)).code in (0, 3)
    names = dict(zip("ABC", ("red", "green", "blue"), strict=True))
    records = lines_of(tmp_path / "run/records.jsonl")
    for record in records:
        shown = [f"{letter}. {names[of_data]}" for letter, of_data in zip("ABC", record["order"], strict=True)]
        assert record["prompt"] == f"Which is {record['row']['n']}?\n" + "\n".join(shown)
        assert record["row"]["options"] == ["red", "green", "blue"]
    assert len({record["order"] for record in records}) > 3
    done = cli("verify", "run")
    assert done.code == 0 and done.out.startswith("ok: 24 records"), done.out
    path = tmp_path / "run/records.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    forged = json.loads(first) | {"order": records[0]["order"][::-1]}
    del forged["crc"]
    path.write_bytes(b"".join([sealed(json.dumps(forged).encode()), *others]))
    assert "row, prompt or order of options is not the one that the manifest lists" in cli("verify", "run").out


def test_no_order_is_favoured_and_each_is_the_same_in_every_run() -> None:
    scorer = ms.choice("{answer}", options="{options}", shuffle=3)
    rows = [TaskRow(f"r{n}", {"options": ["a", "b", "c", "d"], "answer": "A"}, f"row {n}") for n in range(3_000)]
    orders = [scorer.shuffled(row, trial).order for row in rows for trial in range(4)]
    assert orders == [scorer.shuffled(row, trial).order for row in rows for trial in range(4)]
    for letter in "ABCD":
        places = Counter(order.index(letter) for order in orders)
        # 12,000 draws of 1 in 4: three standard errors are 142.
        assert all(abs(count - 3_000) < 200 for count in places.values()), (letter, places)
    assert len(set(orders)) == 24 and min(Counter(orders).values()) > 400
    other = ms.choice("{answer}", options="{options}", shuffle=4)
    assert sum(scorer.shuffled(row, 0).order == other.shuffled(row, 0).order for row in rows) < 250


@pytest.mark.parametrize(("text", "read", "score"), [("B", "A", 1.0), ("The answer is A", "C", 0.0), ("red", "A", 1.0)])
def test_a_letter_is_read_back_to_the_option_that_it_stood_for(text: str, read: str, score: float) -> None:
    scorer: Choice = ms.choice("{answer}", options="{options}", shuffle=1)
    row = TaskRow("r", {"options": ["red", "green", "blue"], "answer": 0}, "row 1", order="CAB")
    found = scorer.score(Reply(text), row)
    assert (found.read, found.value) == (read, score)


def test_equal_prompts_of_several_trials_and_rows_are_different_samples() -> None:
    task = ms.Task(
        data=[{"id": f"r{n}", "options": ["yes", "no"], "answer": "A"} for n in range(5)],
        prompt="Which?\n{options}",
        score=ms.choice("{answer}", options="{options}", shuffle=1),
        trials=6,
    )
    questions = questions_of(task, Path())
    samples = {(question.input, question.sample(question.trial or 0)) for question in questions}
    assert len(questions) == len(samples) == 30 and len({question.input for question in questions}) == 2


def test_what_cannot_be_shuffled_or_varied_is_refused_before_anything_is_sent() -> None:
    rows = [{"options": ["yes", "no"], "answer": "A"} for _ in range(8)]
    hidden = ms.Task(data=rows, prompt="Yes or no?", score=ms.choice("{answer}", options="{options}", shuffle=1))
    with pytest.raises(TaskError, match="expected a prompt that shows the options, got one that is the same in any"):
        questions_of(hidden, Path())
    with pytest.raises(TaskError, match="shuffle: expected the column of the options"):
        ms.choice("{answer}", shuffle=1)
    with pytest.raises(TaskError, match="shuffle: expected a whole number as seed, got True"):
        ms.choice("{answer}", options="{options}", shuffle=True)
    with pytest.raises(TaskError, match="prompt: expected two variants or more"):
        ms.Task(data=rows, prompt={"one": "a"}, score=ms.match("A"))
    two = {name: ms.choice("{answer}", options="{options}", shuffle=seed) for name, seed in (("a", 1), ("b", 2))}
    with pytest.raises(TaskError, match="expected one seed and one column"):
        ms.Task(data=rows, prompt="{options}", score=two)
