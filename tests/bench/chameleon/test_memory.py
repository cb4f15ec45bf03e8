"""A whole data set's conversations need the memory of a few: nothing is kept of what is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]

_PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[3]]
from chameleon_outside import JUDGE, MODEL, ScriptedOutside
from chameleon_sweep import read_done, run_sweep, specification
from virtual_time import run_virtually
from millstream.bench.chameleon.run_spec import ConversationSpec
from millstream.bench.chameleon.dataset import Conversation, ConversationSet
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder

class Forgetful(dict):
    def __setitem__(self, key, value):
        pass

held = tuple(
    Conversation(f"c{at}", "D", f"Topic {at}", tuple(f"How is question {n} of {at}? " + "w" * 120 for n in range(15)))
    for at in range(1_180)
)
dataset = ConversationSet("made", "0" * 64, held[: int(sys.argv[1])], held)
tokens = {MODEL: 100_000, JUDGE: 100_000}
asked = ConversationSpec(pairs=(Pair(MODEL, 0.0),), judge=JUDGE, search="search/script", pages=1, tokens=tokens)
outside = ScriptedOutside(memory=Forgetful(), keeps_events=False)
with RunFolder(Path(sys.argv[2]), specification(dataset, asked, {})) as folder:
    folder.write_manifest()
    run_virtually(run_sweep(outside, folder, dataset, asked, read_done(folder)))
    lines = folder.records.lines
# ru_maxrss would count the process that this one was forked from.
print(lines, Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def peak_of(conversations: int, folder: Path) -> tuple[int, int]:
    """Lines written, and the process's largest size in kB."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, str(conversations), str(folder), str(ROOT / "tests/support")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    lines, size = done.stdout.split()
    return int(lines), int(size)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process's own peak is read from /proc")
@pytest.mark.timeout(300)
def test_1180_conversations_need_the_memory_of_100_to_within_a_tenth(tmp_path: Path) -> None:
    few, small = peak_of(100, tmp_path / "few")
    many, large = peak_of(1_180, tmp_path / "many")
    assert (few, many) == (1_500, 17_700)
    assert large <= small * 1.1, f"{large:,} kB for 1,180 conversations, {small:,} kB for 100"
