"""Asks an advisory service whether a locked version has a known vulnerability, and fails only on an answer.

Where no service can be reached, or where it knows none of the packages (a mirror without advisories), a copy of the
advisories is read, if MILLSTREAM_ADVISORIES names one: the archive of OSV's documents for PyPI. Without it nothing was
audited, which is said, and passes: no network is no verdict, and never reported as "none found".
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

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


def verdict_of_copy(archive: Path, lock: str) -> tuple[bool, str]:
    """What `verdict` says, from a copy of OSV's advisories."""
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock, re.M))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    advisories, bad = 0, list[str]()
    newest = ""
    try:
        with zipfile.ZipFile(archive) as held:
            for name in held.namelist():
                advisory = json.loads(held.read(name))
                advisories += 1
                newest = max(newest, advisory.get("modified", ""))
                bad += () if advisory.get("withdrawn") else affected(advisory, versions)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        return False, f"audit: {archive} is no archive of advisories: {error}"
    if not advisories:
        return False, f"audit: {archive} holds no advisory"
    if bad:
        return False, "\n".join([f"audit: {len(bad)} known vulnerabilities: raise the version, then make lock", *bad])
    age = f"the newest of {advisories:,} advisories is of {newest[:10] or 'an unknown day'}"
    return True, f"audit: no known vulnerability in {len(versions)} packages, by a copy of which {age}"


def affected(advisory: dict[str, Any], versions: dict[str, str]) -> Iterator[str]:
    """Yields a line for each locked version that an advisory of OSV's is about."""
    for part in advisory.get("affected", []):
        package = part.get("package", {})
        version = versions.get(canonicalize_name(package.get("name", "")))
        if package.get("ecosystem") != "PyPI" or version is None:
            continue
        ranges = [one["events"] for one in part.get("ranges", []) if one.get("type") == "ECOSYSTEM"]
        if version in part.get("versions", []) or any(is_within(version, events) for events in ranges):
            mended = [event["fixed"] for events in ranges for event in events if "fixed" in event]
            yield f"  {package['name']} {version}: {advisory['id']}, mended in {', '.join(mended) or 'no version yet'}"


def is_within(version: str, events: list[dict[str, str]]) -> bool:
    """Whether a version lies in a range of OSV's: introduced, then fixed or last affected."""
    here, inside = Version(version), False
    ordered = defaultdict[str, list[Version]](list)
    for event in events:
        for kind, text in event.items():
            try:
                ordered[kind].append(Version(text))
            except InvalidVersion:
                return True  # nobody can tell: it is named, and a person looks
    if any(begin <= here for begin in ordered["introduced"]):
        begin = max(begin for begin in ordered["introduced"] if begin <= here)
        inside = not any(begin < end <= here for end in ordered["fixed"])
        inside = inside and not any(begin <= end < here for end in ordered["last_affected"])
    return inside


def main() -> int:
    """Prints what is known of the locked versions. Returns 1 if one has a known vulnerability."""
    done = subprocess.run([*COMMAND, *OPTIONS], capture_output=True, text=True, check=False)
    passed, text = verdict(done.returncode, done.stdout, done.stderr)
    if "was NOT audited" in text and (copy := os.environ.get("MILLSTREAM_ADVISORIES")):
        passed, text = verdict_of_copy(Path(copy), Path(LOCK).read_text("utf-8"))
    print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
