"""The program's entry point: `millstream` and `python -m millstream`. Knows only where the command line lives."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Runs the command line on this process's arguments and returns its exit code."""
    try:
        from .engine.collector import calm_collector
        from .engine.no_dumps import forbid_core_dumps

        forbid_core_dumps()
        with calm_collector():
            from .interfaces.cli.command import main as command

            code = command()
        # The process ends, and Python's last garbage collections would walk through all that was loaded, for nothing.
        gc.freeze()
        return code
    except KeyboardInterrupt:
        # While it still loads, before the command line can say so.
        print("millstream: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
