"""Certificates for servers on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import certifi


def make_certificate(folder: Path) -> tuple[str, str]:
    """Returns the files of a certificate for localhost that nobody vouches for, and of its key."""
    certificate, key = str(folder / "certificate"), str(folder / "key")
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def make_roots(file: Path) -> Path:
    """Returns a file with one of the web's root certificates. Google's client reads all of them three times for each
    client, in a tenth of a second, and the servers of tests have none."""
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    file.write_text(first + end)
    return file
