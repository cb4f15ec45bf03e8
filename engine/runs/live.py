"""What a running run says to other processes, and what these ask of it: files in a folder of their own in the run's.

The process that holds the run's lock is the only one that acts. It replaces its state once a second and carries out
requests; each stands under a name of its own, so that several processes may ask at once. Who asks takes the request
back if nobody took it. Nothing here outlives the run: what a kill leaves, the next process removes unread.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import orjson

from ..exit_codes import WRONG_USAGE
from ..fault import LocalFault
from ..folder_file import make_folder, read_whole, write_whole
from .run_folder import read_manifest

LIVE = ".live"
STEERED = "steered"
"""The manifest's field for what was changed while the run went on, each with its time and the request's name."""
_STATE, _REQUEST, _ANSWER = "state.json", ".request", ".answer"
# A state that is older is that of a process which was killed, or stands still.
SILENT_S = 5.0
# A request is taken within a quarter of a second; saying what holds may wait for the disk.
_ANSWERED_S = 10.0
_LOOK_EVERY_S = 0.05


class NotSteered(Exception):
    """Raised for a request that is not carried out; the message says why in one line."""

    exit_code = WRONG_USAGE


class LiveFolder:
    """The owner's side, open while its run sends. A disk that takes no file hides the run, and does not end it."""

    def __init__(self, run: Path) -> None:
        self._folder = run / LIVE
        self.close()
        with suppress(OSError, LocalFault):
            make_folder(self._folder)

    def tell(self, state: Mapping[str, Any]) -> None:
        """Replaces the state that others read."""
        self._write(_STATE, state)

    def requests(self) -> Iterator[tuple[str, Any]]:
        """Yields each new request and its name. Taking it ends the chance to take it back. What can't be taken, as a
        folder of such a name, and what has a name that none of ours has, is left."""
        with suppress(OSError):
            names = [each for each in os.listdir(self._folder) if each.endswith(_REQUEST) and each.isascii()]
            for name in sorted(names):
                request = _read(self._folder / name)
                with suppress(OSError):
                    (self._folder / name).unlink()
                    yield name.removesuffix(_REQUEST), request

    def answer(self, name: str, state: Mapping[str, Any]) -> None:
        self._write(f"{name}{_ANSWER}", state)

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        # Without a sync: nobody needs it after a power cut, and the loop that sends must not wait for the disk.
        with suppress(OSError, LocalFault):
            write_whole(self._folder / name, msgspec.json.encode(value), is_synced=False)

    def close(self) -> None:
        with suppress(OSError):
            if self._folder.is_symlink():
                self._folder.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)


def state_of(run: Path) -> Mapping[str, Any] | None:
    """Returns the state of the run that a folder's owner is sending, with the seconds since then as `silent_s`; None if
    there is none."""
    path = run / LIVE / _STATE
    with suppress(OSError):
        age_s = max(0.0, time.time() - path.stat().st_mtime)
        if isinstance(state := _read(path), dict):
            return {**state, "silent_s": age_s}
    return None


def is_sending(state: Mapping[str, Any] | None) -> bool:
    return state is not None and state["silent_s"] <= SILENT_S


def steer(run: Path, request: Mapping[str, Any], sleep: Callable[[float], object] = time.sleep) -> Mapping[str, Any]:
    """Asks the process that owns a run for a change, waits until it has confirmed it, and returns the run's state then.
    Raises NotSteered if it refuses or does not run, LocalFault if it does not answer or the folder can't be written."""
    if not is_sending(state := state_of(run)):
        raise _not_running(run, state)
    name = f"{time.time_ns()}-{os.getpid()}-{os.urandom(4).hex()}"
    question, reply = (run / LIVE / f"{name}{end}" for end in (_REQUEST, _ANSWER))
    try:
        write_whole(question, msgspec.json.encode(request), is_synced=False)
    except FileNotFoundError:
        raise _not_running(run, None) from None
    except OSError as error:
        raise LocalFault(f"{question.parent} can't be written ({error.strerror}): nothing was asked") from error
    until = time.monotonic() + _ANSWERED_S
    while time.monotonic() < until or not _taken_back(question):
        if isinstance(answer := _read(reply), dict):
            with suppress(OSError):
                reply.unlink()
            if "error" in answer:
                raise NotSteered(f"{run}: {answer['error']}")
            return answer
        if not question.parent.exists():
            return _ended(run, name)
        if time.monotonic() > until + _ANSWERED_S:
            break
        sleep(_LOOK_EVERY_S)
    raise LocalFault(f"{run}: its process did not answer within {_ANSWERED_S:.0f} s: see whether it stands still")


def _taken_back(question: Path) -> bool:
    """Takes a request back. Returns False if the owner has taken it, and will answer or was killed at it."""
    try:
        question.unlink()
    except OSError:
        return False
    return True


def _ended(run: Path, name: str) -> Mapping[str, Any]:
    """Returns the state of a run that has ended meanwhile, if it carried out the request before."""
    if any(each.get("request") == name for each in read_manifest(run).get(STEERED, ())):
        return {"state": "ended"}
    raise _not_running(run, None)


def _not_running(run: Path, state: Mapping[str, Any] | None) -> Exception:
    why = "only a run that goes on can be steered"
    if state is not None:
        who = f"process {state.get('process')} on {state.get('host')}"
        why = f"{who} said so {state['silent_s']:,.0f} s ago for the last time: it was killed or stands still"
    return NotSteered(f"{run} is not sending anything: {why}")


def _read(path: Path) -> Any:
    """Returns the content of a JSON file; None if there is none, or it is not whole."""
    with suppress(OSError, LocalFault, orjson.JSONDecodeError):
        return orjson.loads(read_whole(path))
    return None
