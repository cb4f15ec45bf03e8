"""Files of a run's folder: which lines are too deep, what is never written through, and what is not written at all."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.folder_file import (
    DEPTH_MAX,
    LINE_MAX,
    WHOLE_MAX,
    NotRegular,
    line_blocks,
    lines_in,
    open_to_append,
    write_whole,
)
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


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_of_any_length_are_read_whole_in_small_blocks_from_any_of_them_on(tmp_path: Path, end: bytes) -> None:
    path, chance = tmp_path / "a", random.Random(7)
    sizes = [0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 3 << 20, *(chance.randrange(900) for _ in range(3_000))]
    written = [b"x" * size + b"\n" for size in chance.sample(sizes, len(sizes))]
    written[-1] = b"the last" + end
    path.write_bytes(b"".join(written))
    for first in (0, 1, len(written) // 2, len(written) - 1):
        blocks = list(line_blocks(path, len(b"".join(written[:first])), first))
        assert [line for lines in blocks for line in lines] == written[first:]
        assert all(sum(map(len, lines)) <= 2 * len(max(lines, key=len)) + (1 << 17) for lines in blocks)


def test_a_line_that_has_no_end_is_refused_by_its_number_and_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"{}\n" * 3)
        file.truncate(LINE_MAX << 6)
    began = time.process_time()
    with pytest.raises(DamagedJournal, match="line 4 is longer than 64 MiB"):
        list(lines_in(path))
    assert time.process_time() - began < 5


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
