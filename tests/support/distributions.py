"""Installed packages of others, made in a folder: what `pip install --target` would leave there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(site: Path, name: str, source: str, points: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
    """One module, named as the package is, and the entry points that it offers, by their groups."""
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{name.replace('-', '_')}.py").write_text(source)
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    told = [line for group, own in points.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in own.items()))]
    (about / "entry_points.txt").write_text("\n".join(told) + "\n")
