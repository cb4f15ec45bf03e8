"""Replies without who gave them, for tests of everything else."""

from __future__ import annotations

from msgspec import structs

from millstream.engine.call import Reply


def without_origin(reply: Reply) -> Reply:
    return structs.replace(reply, answer_id=None, served=None, fingerprint=None, tier=None, router=None)
