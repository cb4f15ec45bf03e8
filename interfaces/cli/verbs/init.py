"""`millstream init`: writes the file of a first task, which runs as it is, and says how."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError
from ....configuration.values import ModelName, Text
from ....engine.fault import LocalFault
from ...terminal.output import say

HELP = "write the file of a first task, which runs as it is"
EXAMPLES = ("init", "init mine.py --model openai/gpt-6-luna")
# Both know the capitals of the task.
SIMULATED = ("sim/pupil", "sim/scholar")

_TASK = """\
import millstream as ms

# One row for each question. data="mine.csv" reads a table beside this file.
rows = [
    {"country": "Chile", "capital": "Santiago", "continent": "Americas"},
    {"country": "Cuba", "capital": "Havana", "continent": "Americas"},
    {"country": "Egypt", "capital": "Cairo", "continent": "Africa"},
    {"country": "France", "capital": "Paris", "continent": "Europe"},
    {"country": "Ghana", "capital": "Accra", "continent": "Africa"},
    {"country": "India", "capital": "New Delhi", "continent": "Asia"},
    {"country": "Italy", "capital": "Rome", "continent": "Europe"},
    {"country": "Japan", "capital": "Tokyo", "continent": "Asia"},
    {"country": "Kenya", "capital": "Nairobi", "continent": "Africa"},
    {"country": "Norway", "capital": "Oslo", "continent": "Europe"},
    {"country": "Peru", "capital": "Lima", "continent": "Americas"},
    {"country": "Spain", "capital": "Madrid", "continent": "Europe"},
]

capitals = ms.Task(
    data=rows,
    prompt="What is the capital of {country}? Answer in one word.",
    score=ms.match("{capital}"),
    group="continent",
    trials=3,
)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        type=flag(Text("a file")),
        default="first.py",
        metavar="FILE.py",
        help="where the task goes, a file that does not exist (default: first.py)",
    )
    parser.add_argument(
        "--model",
        nargs="+",
        action="extend",
        type=flag(ModelName()),
        metavar="PROVIDER/MODEL",
        help="the models that the printed command asks (default: simulated ones)",
    )


def run(options: argparse.Namespace) -> int:
    path = Path(options.file)
    if path.suffix != ".py":
        raise UsageError(f"init: expected the name of a Python file, as first.py, got {options.file}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_TASK)
    except FileExistsError:
        raise UsageError(f"{path} is there already: give another name, as init second.py") from None
    except OSError as error:
        raise LocalFault(f"{path} can't be written ({error.strerror}): give another place") from error
    command = shlex.join(["millstream", "run", str(path), "--model", *(options.model or SIMULATED)])
    lines = [f"{path} has a task: 12 questions, their prompt, and how answers are scored. To run it:"]
    if not options.model:
        lines.append("  millstream sim    (in a second terminal: simulated models, which need no API key)")
    say("\n".join([*lines, f"  {command}"]))
    return DONE
