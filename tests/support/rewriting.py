"""In a fresh clone pytest rewrites the assertions of every test file, which takes a core as long as importing them all:
other processes do it from the last file on, while the files are collected from the first one on."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


@contextmanager
def rewritten(config: pytest.Config, files: Iterable[Path]) -> Iterator[None]:
    """Rewrites the files of tests on all cores but one while the block lasts, and keeps the outcome as pytest does."""
    backwards = [] if sys.dont_write_bytecode else list(files)[::-1]
    others = (os.cpu_count() or 1) - 1
    parts = [part for number in range(others) if (part := backwards[number::others])]
    process = multiprocessing.get_context("fork").Process
    processes = [process(target=rewrite_all, args=(config, part)) for part in parts]
    for each in processes:
        each.start()
    try:
        yield
    finally:
        for each in processes:
            each.join()


def rewrite_all(config: pytest.Config, files: Iterable[Path]) -> None:
    """Rewrite each file that is not yet kept as it is now."""
    for file in files:
        kept = rewrite.get_cache_dir(file) / (file.name.removesuffix(".py") + rewrite.PYC_TAIL)
        if rewrite._read_pyc(file, kept) is None and rewrite.try_makedirs(kept.parent):
            source_hash, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, kept)
