"""Run the tests that failed in the whole suite once more, by themselves: a host that freezes for seconds fails tests of
wall time. More than three failures are no accident, and none of them is run again."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MOST = 3
FAILED = Path(".pytest_cache/v/cache/lastfailed")
# pytest's exit code of the last whole run, which tests/conftest.py writes: 1 says that all tests ran, and some failed.
EXIT_STATUS = Path(".pytest_cache/v/millstream/exit_status")
SOME_FAILED = "1"


def failed_tests() -> list[str]:
    return sorted(json.loads(FAILED.read_bytes())) if FAILED.exists() else []


def main() -> None:
    failed = failed_tests()
    if not failed or not EXIT_STATUS.exists() or EXIT_STATUS.read_text() != SOME_FAILED:
        sys.exit("the tests did not run to their end, or none of them failed: nothing to run again")
    if len(failed) > MOST or not all("::" in test for test in failed):
        sys.exit(f"{len(failed)} failed: at most {MOST} tests are run again")
    print("failed beside others, run again by themselves:", *failed, sep="\n  ", flush=True)
    os.execv(
        sys.executable,
        [sys.executable, "-P", "-m", "pytest", "-c", "tests/pytest.ini", "--rootdir=.", "-v", *failed],
    )


if __name__ == "__main__":
    main()
