"""Files of a run's folder: which lines are too deep, what is never written through, and what is not written at all."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.folder_file import DEPTH_MAX, WHOLE_MAX, NotRegular, lines_in, open_to_append, write_whole
from millstream.engine.runs.run_folder import RunFolder, read_manifest


def lines(path: Path, *every: bytes) -> list[bytes]:
    path.write_bytes(b"".join(line + b"\n" for line in every))
    return [line.removesuffix(b"\n") for line in lines_in(path)]


def test_brackets_in_a_text_are_no_depth_and_those_around_values_are(tmp_path: Path) -> None:
    text = json.dumps({"text": 'code: "' + "[{" * 5_000, "more": "\\"}).encode()
    wide = json.dumps([[]] * 5_000).encode()
    assert lines(tmp_path / "a", text, wide) == [text, wide]
    most = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
    assert lines(tmp_path / "b", most) == [most]
    with pytest.raises(DamagedJournal, match="line 2 is nested more than 900 deep"):
        lines(tmp_path / "c", text, b'{"a":"\\"",' + b'"b":[' * 2_000)


def test_a_line_of_quotes_that_never_ends_is_looked_through_in_linear_time(tmp_path: Path) -> None:
    began = time.process_time()
    assert len(lines(tmp_path / "a", b"[]" * 1_000 + b'"' + b'\\"' * 2_000_000)) == 1
    assert time.process_time() - began < 10


def test_a_link_is_neither_appended_to_nor_kept_where_a_file_is_replaced(tmp_path: Path) -> None:
    outside, link, draft = tmp_path / "outside", tmp_path / "link", tmp_path / "link.new"
    outside.write_text("ours")
    for name in (link, draft):
        name.symlink_to(outside)
    with pytest.raises(NotRegular, match="link is a link, and only a regular file is read or written there"):
        open_to_append(link)
    write_whole(link, b"theirs")
    assert (link.is_symlink(), link.read_bytes(), draft.is_symlink()) == (False, b"theirs", False)
    assert outside.read_text() == "ours"


def test_a_manifest_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {"models": ["script/m"]}) as run:
        run.write_manifest(note="short")
        with pytest.raises(LocalFault, match="longer than 256 MiB"):
            run.write_manifest(note="x" * WHOLE_MAX, limit=9)
        # Nor does the next write bring what was refused.
        run.write_manifest(other=1)
    assert "limit" not in read_manifest(tmp_path)
    assert read_manifest(tmp_path)["note"] == "short"
