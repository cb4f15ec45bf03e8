"""Writes the list of what an installation is made of: a CycloneDX 1.6 document of requirements.txt, with every version
and hash. The words of the command line are the file to write, else it goes to stdout.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\\n]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, Any]]:
    """Returns an entry for each package of a lock file."""
    entries = list[dict[str, Any]]()
    for line in lock.splitlines():
        if pinned := _PINNED.match(line):
            name, version, marker = canonicalize_name(pinned[1]), pinned[2], pinned[3]
            purl = f"pkg:pypi/{name}@{version}"
            entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "hashes": []}
            if marker:
                entry["properties"] = [{"name": "millstream:only-where", "value": marker.strip()}]
            entries.append(entry)
        elif digest := _HASH.search(line):
            entries[-1]["hashes"].append({"alg": "SHA-256", "content": digest[1]})
    return entries


def document(lock: str, version: str) -> dict[str, Any]:
    """Returns the whole document: the same lock gives the same bytes, so it has no time and no random serial number."""
    purl = f"pkg:pypi/millstream@{version}"
    parts = components(lock)
    main = {"type": "application", "bom-ref": purl, "name": "millstream", "version": version, "purl": purl}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**main, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": parts,
        "dependencies": [{"ref": purl, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def main() -> int:
    """Writes the document for the lock of this repository."""
    from millstream import __version__

    text = json.dumps(document((ROOT / "requirements.txt").read_text("utf-8"), __version__), indent=1) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
