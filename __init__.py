"""Millstream: runs very many calls under their quotas, pays for each once, keeps every answer.

Holds the public names and the version. Each name is loaded on first use, so that importing the
package costs next to nothing and a part that is not used is never read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.admission import Stop
    from .engine.call import Call, Citation, Failure, Hit, Message, Outcome, Reply, TokenLogprob, Usage
    from .engine.content import Image, Native, Tool, ToolCall, ToolResult
    from .engine.endpoint import EncodeError, Fault, Request, Response
    from .engine.events import Event
    from .engine.fault import LocalFault, Stopped
    from .engine.lane import Lane
    from .engine.money import Price
    from .engine.retry import RetryPolicy
    from .engine.sink import Sink
    from .interfaces.blocking import SyncEngine
    from .metrics.statistics.comparisons import Comparison, compare
    from .metrics.statistics.intervals import Interval, interval
    from .providers.authorizer import Authorizer, bearer, key_in
    from .providers.kinds import Credentials, Kind
    from .providers.llm.protocol import Target, WireProtocol, request_of
    from .providers.pages.page import Page
    from .providers.search.joined import Found
    from .providers.search.query import Reach
    from .providers.search.table import SearchEngine
    from .providers.table import Provider
    from .wiring import ConfigurationError, Engine, LaneStatistics, OpenedSink, Settings, Statistics, open_sink

__version__ = "0.1.0"

__all__ = [
    "Authorizer",
    "Call",
    "Citation",
    "Comparison",
    "ConfigurationError",
    "Credentials",
    "EncodeError",
    "Engine",
    "Event",
    "Failure",
    "Fault",
    "Found",
    "Hit",
    "Image",
    "Interval",
    "Kind",
    "Lane",
    "LaneStatistics",
    "LocalFault",
    "Message",
    "Native",
    "OpenedSink",
    "Outcome",
    "Page",
    "Price",
    "Provider",
    "Reach",
    "Reply",
    "Request",
    "Response",
    "RetryPolicy",
    "SearchEngine",
    "Settings",
    "Sink",
    "Statistics",
    "Stop",
    "Stopped",
    "SyncEngine",
    "Target",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "WireProtocol",
    "bearer",
    "compare",
    "interval",
    "key_in",
    "open_sink",
    "request_of",
]

_HOMES = {
    "Authorizer": "providers.authorizer",
    "Call": "engine.call",
    "Citation": "engine.call",
    "Comparison": "metrics.statistics.comparisons",
    "ConfigurationError": "wiring",
    "Credentials": "providers.kinds",
    "EncodeError": "engine.endpoint",
    "Engine": "wiring",
    "Event": "engine.events",
    "Failure": "engine.call",
    "Fault": "engine.endpoint",
    "Found": "providers.search.joined",
    "Hit": "engine.call",
    "Image": "engine.content",
    "Interval": "metrics.statistics.intervals",
    "Kind": "providers.kinds",
    "Lane": "engine.lane",
    "LaneStatistics": "wiring",
    "LocalFault": "engine.fault",
    "Message": "engine.call",
    "Native": "engine.content",
    "OpenedSink": "wiring",
    "Outcome": "engine.call",
    "Page": "providers.pages.page",
    "Price": "engine.money",
    "Provider": "providers.table",
    "Reach": "providers.search.query",
    "Reply": "engine.call",
    "Request": "engine.endpoint",
    "Response": "engine.endpoint",
    "RetryPolicy": "engine.retry",
    "SearchEngine": "providers.search.table",
    "Settings": "wiring",
    "Sink": "engine.sink",
    "Statistics": "wiring",
    "Stop": "engine.admission",
    "Stopped": "engine.fault",
    "SyncEngine": "interfaces.blocking",
    "Target": "providers.llm.protocol",
    "TokenLogprob": "engine.call",
    "Tool": "engine.content",
    "ToolCall": "engine.content",
    "ToolResult": "engine.content",
    "Usage": "engine.call",
    "WireProtocol": "providers.llm.protocol",
    "bearer": "providers.authorizer",
    "compare": "metrics.statistics.comparisons",
    "interval": "metrics.statistics.intervals",
    "key_in": "providers.authorizer",
    "open_sink": "wiring",
    "request_of": "providers.llm.protocol",
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
