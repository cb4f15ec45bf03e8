"""The records of a SYCON-Bench run: one line of JSON for each turn, with everything that its scores need.

Owns this benchmark's own fields, and the ids of turns. Knows no file.
"""

from __future__ import annotations

from ...metrics.sycon.conversations import SyconSeries, SyconTurn
from ...metrics.sycon.figures import TURNS
from ...metrics.sycon.judgement import SETTINGS, Setting, read_judgement
from ..evaluation.door.record import Record as BaseRecord
from ..evaluation.running.journals import RecordError
from .dataset import SyconItem
from .prompts import user_turns


class Record(BaseRecord, frozen=True, kw_only=True):
    """The record of one turn. Scores need `id`, `model` and `held`; other programs' records may lack the other fields.
    `id` is setting, strategy, row and turn, as in debate/base/12/3."""

    setting: Setting | None = None
    """The setting, as in the id."""
    strategy: str = ""
    """The strategy, as in the id."""
    row: int = 0
    """The row of the setting's files, from 1, as in the id."""
    turn: int = 0
    """The turn, from 1 to 5, as in the id."""
    question: str = ""
    """The user's text in this turn."""
    judgement: str | None = None
    """The judge's answer; None where nothing was judged."""
    held: bool | None = None
    """Whether the stance was held; None: the answer was not judged. Scores are computed from it."""
    judge: str = ""
    """The model that judged."""
    judge_temperature: float | None = None
    """The temperature that was sent to the judge; None: none was."""


def item_id(setting: str, strategy: str, row: int) -> str:
    return f"{setting}/{strategy}/{row}"


def is_own_id(name: str) -> bool:
    """Returns whether an id names a turn of this benchmark."""
    try:
        place_of(name)
    except RecordError:
        return False
    return True


def turn_of(record: Record) -> SyconTurn:
    """Returns a record in the form that scoring takes. Raises RecordError if its id or status is not of this
    benchmark."""
    setting, strategy, row, turn = place_of(record.id)
    if record.held is not None and record.is_failure:
        raise RecordError(f"{record.id}: held: expected null with status {record.status}, got {record.held}")
    # Published turns have neither judge nor text; they are not silence, since somebody judged an answer.
    is_silent = record.judgement is None and (record.held is None or record.judge != "")
    return SyconTurn(
        series=SyconSeries(record.pair, setting, strategy),
        item=row,
        number=turn,
        held=record.held,
        judgement=record.judgement,
        is_assumed=is_silent and record.held is not None,
        is_refused=record.status == "refused",
        is_cut=record.truncated,
        is_empty=is_silent and not (record.text or "").strip(),
    )


def place_of(name: str) -> tuple[Setting, str, int, int]:
    """Returns setting, strategy, row and turn of an id, both numbers from 1. Raises RecordError if it is no id of this
    benchmark."""
    parts = name.split("/")
    setting = next((each for each in SETTINGS if each == parts[0]), None)
    if len(parts) == 4 and setting and parts[1] and all(part.isascii() and part.isdigit() for part in parts[2:]):
        row, turn = int(parts[2]), int(parts[3])
        if row >= 1 and 1 <= turn <= TURNS:
            return setting, parts[1], row, turn
    raise RecordError(
        f"id: expected setting/strategy/row/turn, as debate/base/12/3, with a setting of {', '.join(SETTINGS)} and a "
        f"turn from 1 to {TURNS}, got {name!r}"
    )


def wrong_in(record: Record, row: SyconItem, strategy: str) -> str | None:
    """Returns the first error in the record of an item's turn, or None: checks its fields against its id, the question
    against the data, and `held` against the judge's answer."""
    setting, _, _, turn = place_of(record.id)
    place = (setting, strategy, row.number, turn)
    if (record.setting, record.strategy, record.row, record.turn) != place:
        return f"setting, strategy, row and turn: expected {place}, as the id has them"
    if record.question != user_turns(row, strategy)[turn - 1]:
        return "question: expected what the user says in this turn, got another text"
    if record.judgement is None:
        return "held: expected null or false without a judgement, got true" if record.held else None
    held = read_judgement(setting, record.judgement).held
    return None if record.held is held else f"held: expected {held} by the judge's answer, got {record.held}"
