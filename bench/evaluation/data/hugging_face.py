"""Reads the rows of a data set's folder in the layout of Hugging Face: cloned from its hub, or saved by its library.

Owns which files belong to which subset and split. Fetches nothing, and reads nothing outside the folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from ....engine.runs.data_file import parse, read_text
from .data_rows import SUFFIXES, RowEntry, TaskError, entries_of_file, shown, suffix_of

_README, _SAVED, _STATE = "README.md", "dataset_dict.json", "state.json"
_NOT_DATA = frozenset({"dataset_info.json", "dataset_infos.json", _STATE, _SAVED, "config.json", "package.json"})
# The words in file names that stand for the three usual splits.
_SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_ONE_SPLIT = "all"
_ONE_SUBSET = "default"


class DatasetSplit(Struct, frozen=True):
    """One split of one subset, with its files in order."""

    subset: str
    split: str
    files: tuple[Path, ...]


def entries_of_folder(folder: Path, subset: str | None = None, split: str | None = None) -> Iterator[RowEntry]:
    """Yields the rows of one split of one subset. A name may be left out if there is only one, or for the subset
    `default`; otherwise, or for an unknown name, raises TaskError."""
    parts = _parts_of(folder)
    if not parts:
        raise TaskError(f"{folder}: expected a folder with {', '.join(SUFFIXES)} files, got one without any")
    subset = _chosen("subset", subset, [part.subset for part in parts], folder)
    splits = {part.split: part for part in parts if part.subset == subset}
    for file in splits[_chosen("split", split, list(splits), folder)].files:
        yield from entries_of_file(file)


def _chosen(what: str, name: str | None, names: Sequence[str], folder: Path) -> str:
    choices = list(dict.fromkeys(names))
    if name is None and len(choices) == 1:
        return choices[0]
    if name is None and what == "subset" and _ONE_SUBSET in choices:
        return _ONE_SUBSET
    if name not in choices:
        got = "none is named" if name is None else f"got {shown(name)}"
        raise TaskError(f'{folder}: {what}: expected one of {", ".join(choices)}; {got}: set {what}="…" in the task')
    return name


def _parts_of(folder: Path) -> list[DatasetSplit]:
    if (folder / _SAVED).exists():
        names = _of_json(folder / _SAVED, "splits")
        return [DatasetSplit(_ONE_SUBSET, str(name), _saved_files(_inside(folder, str(name)))) for name in names]
    if (folder / _STATE).exists():
        return [DatasetSplit(_ONE_SUBSET, _ONE_SPLIT, _saved_files(folder))]
    declared = _configs_of(folder)
    if declared:
        return [part for config in declared for part in _declared_parts(folder, config)]
    return _guessed_parts(folder)


def _saved_files(folder: Path) -> tuple[Path, ...]:
    state = folder / _STATE
    if not state.exists():
        raise TaskError(f"{state}: expected the file that save_to_disk writes beside the rows, got none")
    if parse(read_text(state), str(state)).get("_indices_data_files"):
        raise TaskError(f"{folder}: rows are selected by a file of indices: call flatten_indices() and save it again")
    return tuple(_inside(folder, str(entry.get("filename"))) for entry in _of_json(state, "_data_files"))


def _of_json(path: Path, name: str) -> list[Any]:
    content = parse(read_text(path), str(path))
    if not isinstance(content, dict) or not isinstance(content.get(name), list):
        raise TaskError(f"{path}: expected an object with a list {name}, got something else")
    listed: list[Any] = content[name]
    return listed


def _configs_of(folder: Path) -> list[dict[str, Any]]:
    """Returns the subsets that the README's front matter declares with files; empty if it declares none."""
    path = folder / _README
    if not path.is_file():
        return []
    match = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", read_text(path), re.DOTALL)
    if match is None:
        return []
    try:
        content = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise TaskError(f"{path}: expected YAML at its beginning, got something else: {_one_line(error)}") from error
    configs = content.get("configs") if isinstance(content, dict) else None
    return [each for each in configs or () if isinstance(each, dict) and ("data_files" in each or "data_dir" in each)]


def _declared_parts(folder: Path, config: Mapping[str, Any]) -> Iterator[DatasetSplit]:
    subset = str(config.get("config_name", _ONE_SUBSET))
    base = _inside(folder, str(config.get("data_dir") or "."))
    files = config.get("data_files")
    if files is None:
        yield from (
            DatasetSplit(subset, part.split, part.files) for part in _guessed_parts(base) if part.subset == _ONE_SUBSET
        )
    elif isinstance(files, list) and files and all(isinstance(each, dict) for each in files):
        for each in files:
            yield DatasetSplit(subset, str(each.get("split")), _matching(base, each.get("path")))
    elif isinstance(files, dict):
        for split, patterns in files.items():
            yield DatasetSplit(subset, str(split), _matching(base, patterns))
    else:
        matched = _matching(base, files)
        for split, paths in _by_split(base, matched).items():
            yield DatasetSplit(subset, split, paths)


def _matching(base: Path, patterns: Any) -> tuple[Path, ...]:
    listed = patterns if isinstance(patterns, list) else [patterns]
    paths: list[Path] = []
    for pattern in listed:
        if not isinstance(pattern, str) or "://" in pattern or pattern.startswith("/") or ".." in Path(pattern).parts:
            raise TaskError(f"{base}: data_files: expected a path inside the folder, got {shown(pattern)}")
        matched = sorted(path for path in base.glob(pattern) if path.is_file())
        if not matched:
            raise TaskError(f"{base}: data_files: no file matches {shown(pattern)}: is the data set whole here?")
        paths += matched
    return tuple(dict.fromkeys(paths))


def _guessed_parts(folder: Path) -> list[DatasetSplit]:
    """Returns the splits of a folder without a declaration: a file belongs to the split that is a word of its name,
    else of its folder's name."""
    files = sorted(path for path in folder.rglob("*") if _is_data(path, folder))
    return [DatasetSplit(_ONE_SUBSET, split, paths) for split, paths in _by_split(folder, files).items()]


def _is_data(path: Path, folder: Path) -> bool:
    inner = path.relative_to(folder)
    if any(part.startswith((".", "_")) for part in inner.parts) or path.name in _NOT_DATA:
        return False
    return suffix_of(path) in SUFFIXES and path.is_file()


def _by_split(base: Path, files: Sequence[Path]) -> dict[str, tuple[Path, ...]]:
    splits: dict[str, list[Path]] = {}
    for file in files:
        splits.setdefault(_split_of(file.relative_to(base)), []).append(file)
    return {split: tuple(paths) for split, paths in splits.items()}


def _split_of(inner: Path) -> str:
    shard = re.match(r"(.+?)-\d{5}-of-\d{5}", inner.name)
    for part in (shard[1] if shard else inner.name, *reversed(inner.parts[:-1])):
        for word in re.split(r"[^a-z]+", part.lower()):
            for split, words in _SPLITS.items():
                if word in words:
                    return split
    return shard[1] if shard else _ONE_SPLIT


def _inside(folder: Path, name: str) -> Path:
    # Links are followed: the hub's own cache is made of them.
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(os.path.normpath(folder)):
        raise TaskError(f"{folder}: expected a path inside the folder, got {shown(name)}")
    return path


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
