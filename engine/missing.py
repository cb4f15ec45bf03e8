"""Says for an ImportError which library is missing, and what to do. Imports none, since any may be missing."""

from __future__ import annotations

from importlib.util import find_spec


def missing_module(error: BaseException) -> str:
    """Returns the top-level name of the module that an ImportError is about, also if a library raised an error of its
    own in its place; "" if none is missing."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, ModuleNotFoundError) and at.name:
            return at.name.partition(".")[0]
        at = (at.__cause__ or at.__context__) if isinstance(at, ImportError) else None
    return ""


def require(library: str) -> None:
    """Raises ModuleNotFoundError for a library that is not installed, without loading it."""
    if find_spec(library) is None:
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)


def missing_text(error: ImportError) -> str:
    """Returns one line: what is missing or broken, and what to do about it."""
    name = missing_module(error)
    if name:
        return f"{name} is missing: pip install {name}, or install Millstream anew"
    return f"{' '.join(str(error).split())[:500]}: install Millstream anew"
