"""The script of live figures, bundled once for every process of the tests: that takes two seconds of a core each time.

The installed program and the demo, which tests start as a person does, bundle their own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MAKE = "import sys; from millstream.report import page; sys.stdout.buffer.write(page._runtime().encode())"


@cache
def kept_script() -> Path:
    """The file of the script that this code and its drawing library make; it is made where it is missing."""
    made_by = (ROOT / "report/page.py").read_bytes() + version("vl-convert-python").encode()
    file = ROOT / "build" / f"figures-{hashlib.sha256(made_by).hexdigest()[:16]}.js"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        # By a process of its own: the threads of the drawing library would be missing in a fork of this one.
        script = subprocess.run([sys.executable, "-P", "-c", MAKE], cwd=ROOT, check=True, capture_output=True).stdout
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_bytes(script)
        beside.replace(file)
    return file


def take_kept_script() -> None:
    """Let pages that this process writes have the kept script, if it writes any."""
    if page := sys.modules.get("millstream.report.page"):
        script = kept_script().read_bytes().decode()
        setattr(page, "_runtime", lambda kept_in=None: script)  # noqa: B010
