"""Millstream: runs very many calls under their quotas, pays for each once, keeps every answer.

Holds the public names and the version. Each name is loaded on first use, so that importing the
package costs next to nothing and a part that is not used is never read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.call import Call, Failure, Message, Outcome, Reply, Usage
    from .engine.fault import LocalFault, Stopped
    from .engine.lane import Lane
    from .wiring import ConfigurationError, Engine, Settings

__version__ = "0.1.0"

__all__ = [
    "Call",
    "ConfigurationError",
    "Engine",
    "Failure",
    "Lane",
    "LocalFault",
    "Message",
    "Outcome",
    "Reply",
    "Settings",
    "Stopped",
    "Usage",
]

_HOMES = {
    "Call": "engine.call",
    "ConfigurationError": "wiring",
    "Engine": "wiring",
    "Failure": "engine.call",
    "Lane": "engine.lane",
    "LocalFault": "engine.fault",
    "Message": "engine.call",
    "Outcome": "engine.call",
    "Reply": "engine.call",
    "Settings": "wiring",
    "Stopped": "engine.fault",
    "Usage": "engine.call",
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a misspelt name

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(__all__)}")
        value = getattr(import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
