"""Processes of the program that begin with its modules imported, which takes half a second of a core each time.

`Prepared` is a `Popen` whose child was forked by a process that waits for this. All else is as after an `exec`: folder,
environment, streams, limits, and whose child it is. Tests of terminals, of the installed program and of the demo start
it as a person does.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

MODULES = (
    "millstream.__main__",
    "millstream.interfaces.cli.verbs.run",
    "millstream.interfaces.cli.verbs.sim",
    "millstream.report.page",
    "millstream.bench.evaluation.running.execution",
    "millstream.wiring.engine",
    "numpy",
    "uvloop",
)
LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
MESSAGE_MAX = 1 << 20
_lock = Lock()


def kind_for(variables: Mapping[str, str]) -> type[subprocess.Popen[Any]]:
    """How to start the program with these variables beside those that every command of the tests has: what concerns the
    interpreter or its libraries needs an interpreter of its own."""
    is_plain = not any(name.startswith(("PYTHON", "LD_")) for name in variables)
    return Prepared if is_plain and sys.platform == "linux" else subprocess.Popen


class Prepared(subprocess.Popen[Any]):
    """A process of `[python, …, "millstream", *arguments]`."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any,
                       env: Any, startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int,
                       c2pread: int, c2pwrite: int, errread: int, errwrite: int, *more: Any) -> None:  # fmt: skip
        streams = [number if stream == -1 else stream for number, stream in enumerate((p2cread, c2pwrite, errwrite))]
        limits = [resource.getrlimit(limit) for limit in LIMITS]
        arguments = args[args.index("millstream") + 1 :]
        order = json.dumps([str(cwd or os.getcwd()), env, arguments, limits]).encode()
        sys.audit("subprocess.Popen", executable, args, cwd, env)
        prctl = ctypes.CDLL(None).prctl
        with _lock:
            line = _line()
            # Who forks the process ends at once, and the process is then a child of this one.
            prctl(SUBREAPER, 1)
            try:
                socket.send_fds(line, [order], streams)
                self.pid = int(line.recv(100))
                assert line.recv(100) == b"orphaned"
            finally:
                prctl(SUBREAPER, 0)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def freeze_heap() -> None:
    """Exempt all that exists now from later searches. Each run of the program asks whether the process has done that,
    by the number of its frozen objects, and counting a million of them takes a tenth of a second: it is kept."""
    gc.collect()
    gc.freeze()
    number = gc.get_freeze_count()
    setattr(gc, "get_freeze_count", lambda: number)  # noqa: B010


@cache
def _line() -> socket.socket:
    """Where orders go: to a process that forks, and ends with this one."""
    from bundled import kept_script  # which the other process does not find

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    variables = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-P", __file__, str(theirs.fileno()), str(kept_script())]
    none = subprocess.DEVNULL
    with theirs:
        process = subprocess.Popen(command, env=variables, stdin=none, stdout=none, pass_fds=[theirs.fileno()])
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(line: socket.socket) -> None:
    """Fork a process for each order; returns in the one that shall carry it out."""
    while True:
        data, streams, _, _ = socket.recv_fds(line, MESSAGE_MAX, 3)
        if not data:
            os._exit(0)
        if (between := os.fork()) == 0:
            if pid := os.fork():
                line.send(str(pid).encode())
                os._exit(0)
            line.close()
            folder, variables, arguments, limits = json.loads(data)
            _become(folder, variables, arguments, limits, streams)
            return
        os.waitpid(between, 0)
        line.send(b"orphaned")
        for stream in streams:
            os.close(stream)


def _become(
    folder: str, variables: dict[str, str], arguments: list[str], limits: list[tuple[int, int]], streams: list[int]
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for limit, (soft, hard) in zip(LIMITS, limits, strict=True):
        resource.setrlimit(limit, (soft, hard))
    main = sys.modules["__main__"] = sys.modules["millstream.__main__"]
    sys.argv = [str(main.__file__), *arguments]


if __name__ == "__main__":
    orders = socket.socket(fileno=int(sys.argv[1]))
    for module in MODULES:
        import_module(module)
    script = Path(sys.argv[2]).read_bytes().decode()
    setattr(sys.modules["millstream.report.page"], "_runtime", lambda: script)  # noqa: B010
    # As after an import, what stays is no part of a later search.
    freeze_heap()
    _serve(orders)
    sys.exit(sys.modules["__main__"].main())
