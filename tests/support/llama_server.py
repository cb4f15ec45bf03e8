"""A real llama.cpp server with a tiny random model, in a process of its own: as a program, and as who starts it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SLOTS = 4


def serve(folder: Path) -> None:
    """Say where it listens, then serve until standard input ends."""
    import xllamacpp  # type: ignore[import-untyped]
    from tiny_gguf import CONTEXT, write_model

    model = folder / "tiny.gguf"
    write_model(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = CONTEXT * SLOTS
    params.n_parallel = SLOTS
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2 * SLOTS
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # Its threads outlive the interpreter's end otherwise.
    del server


@contextmanager
def llama_server() -> Iterator[str]:
    """The base URL of a server that lives as long as this context."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdin is not None
            try:
                address = process.stdout.readline().strip()
                assert address.startswith("http"), f"the llama.cpp server ended with {process.wait()}"
                yield f"{address}/v1"
            finally:
                process.stdin.close()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
