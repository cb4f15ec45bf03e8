"""The command `millstream data chameleon`: its options, and the report on the written file.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.values import Text, WholeNumber
from ...evaluation.door.data_command import DataCommand, DataReport

if TYPE_CHECKING:
    from ...evaluation.door.watch import Watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", type=flag(values.ModelName()), metavar="PROVIDER/MODEL", help="who writes topics and conversations"
    )
    parser.add_argument(
        "--topics",
        type=flag(WholeNumber("topics", 1, 100_000)),
        metavar="N",
        help="generate N conversations in all, in the published shares of the domains (default: the published 1,180)",
    )
    parser.add_argument(
        "--topics-from",
        type=flag(Text("a file")),
        metavar="FILE",
        help="one conversation on each of these instead: a JSON object of domains with lists of topics, or a CSV with "
        "the columns domain and topic",
    )
    parser.add_argument(
        "--questions",
        type=flag(WholeNumber("questions", 1, 1_000)),
        default=15,
        metavar="N",
        help="questions of a conversation, each of at most 200 characters (default: 15)",
    )
    parser.add_argument("--out", type=flag(Text("a file")), metavar="FILE", help="the data set file to write")


def run(options: argparse.Namespace, watch: Watch) -> DataReport:
    from .write_conversations import write_conversations
    from .writing_report import as_json, report_text

    written = write_conversations(options, watch)
    return DataReport(exit_code=written.exit_code, text=lambda width: report_text(written), fields=as_json(written))


DATA = DataCommand(
    "Lets a model write conversations: topics of twelve domains, then questions on each, every one checked.",
    add_arguments,
    run,
)
