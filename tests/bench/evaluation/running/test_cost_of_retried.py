"""What failures cost that were set aside for a retry."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.wiring.folder_budget import cost_of_retried


def test_what_was_set_aside_counts_once_and_what_still_stands_not_at_all(tmp_path: Path) -> None:
    paid, stands = b'{"id":"a","cost":0.03}\n', b'{"id":"b","cost":0.5}\n'
    (tmp_path / "failures.jsonl").write_bytes(stands)
    assert cost_of_retried(tmp_path) == 0.0
    (tmp_path / "failures-1.jsonl").write_bytes(paid + stands)
    (tmp_path / "failures-2.jsonl").write_bytes(b'{"id":"a","cost":0.004}\n{"id":"c"}\n')
    assert cost_of_retried(tmp_path) == pytest.approx(0.034)
