"""Asks an advisory service whether a locked version has a known vulnerability, and fails only on an answer.

Where no service can be reached, or where it knows none of the packages (a mirror without advisories),
it says that nothing was audited and passes: no network is no verdict, and never reported as "none found".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

LOCK = "requirements-dev.txt"
COMMAND = [sys.executable, "-m", "pip_audit", "--requirement", LOCK, "--require-hashes", "--disable-pip"]
OPTIONS = ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]

# What pip-audit ends with when the service cannot be reached. A certificate that does not verify is not among them.
UNREACHABLE = re.compile(r"^(requests\.exceptions|pip_audit\S*)\.(\w*ConnectionError|ProxyError|\w*Timeout):", re.M)


def verdict(exit_code: int, stdout: str, stderr: str) -> tuple[bool, str]:
    """Whether the locked versions pass, and one line or more that say what is known about them."""
    try:
        dependencies = json.loads(stdout)["dependencies"]
    except ValueError:
        if UNREACHABLE.search(stderr):
            return True, f"audit: no advisory service could be reached: {LOCK} was NOT audited"
        return False, f"audit: pip-audit failed (exit code {exit_code}):\n{stderr.strip()}"
    skipped = [one["name"] for one in dependencies if "skip_reason" in one]
    bad = [line for one in dependencies for line in vulnerabilities(one)]
    if bad:
        return False, "\n".join([f"audit: {len(bad)} known vulnerabilities: raise the version, then make lock", *bad])
    if len(skipped) == len(dependencies):
        return True, f"audit: the advisory service knows none of the packages: {LOCK} was NOT audited"
    unknown = f"; NOT audited: {', '.join(skipped)}" if skipped else ""
    return True, f"audit: no known vulnerability in {len(dependencies) - len(skipped)} packages{unknown}"


def vulnerabilities(dependency: dict[str, Any]) -> list[str]:
    """A line for each advisory on one package."""
    version = f"  {dependency['name']} {dependency.get('version')}"
    return [
        f"{version}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no version yet'}"
        for one in dependency.get("vulns", [])
    ]


def main() -> int:
    done = subprocess.run([*COMMAND, *OPTIONS], capture_output=True, text=True, check=False)
    passed, text = verdict(done.returncode, done.stdout, done.stderr)
    print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
