"""The samples that come with this program: conversations, and documents on their topics."""

from __future__ import annotations

from pathlib import Path

from ... import fixtures
from ...engine.fault import LocalFault
from ...fixtures.web.corpus import VERSION as CORPUS_VERSION
from ...fixtures.web.corpus import ensure_corpus

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "chameleon"


def sample_corpus(cache: Path) -> Path:
    """Returns the folder of the sample documents, which is written if the cache lacks it."""
    folder = cache / f"sample-corpus-{CORPUS_VERSION}"
    try:
        return ensure_corpus(folder)
    except OSError as error:
        raise LocalFault(f"{folder} can't be written ({error.strerror}): give --corpus, or another --cache") from error
