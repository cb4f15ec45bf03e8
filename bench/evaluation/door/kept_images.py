"""The images of a run's prompts, kept beside its records, which hold descriptions of them alone.

Owns the file's name and its bounds: an image that is too large is not kept, and a page shows its description.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ....engine.folder_file import keep_whole

IMAGES = "images.jsonl"
# Characters of one image, and of all: a data set of many images is not copied into each run.
_LARGEST, _ALL = 2 << 20, 64 << 20


class KeptImage(Struct, frozen=True):
    """An image: its description in records, and its bytes as `data:image/png;base64,…`."""

    text: str
    url: str


def keep_images(folder: Path, images: Iterable[KeptImage]) -> None:
    """Writes the images into a run's folder, each once, as far as the bounds allow. A folder that has some keeps
    them."""
    lines = list(_lines(images))
    if lines and not (folder / IMAGES).exists():
        keep_whole(folder / IMAGES, b"".join(lines))


def _lines(images: Iterable[KeptImage]) -> Iterator[bytes]:
    seen: set[str] = set()
    left = _ALL
    for image in images:
        if image.text not in seen and len(image.url) <= min(_LARGEST, left):
            seen.add(image.text)
            left -= len(image.url)
            yield msgspec.json.encode(image) + b"\n"
