"""Millstream: runs very many calls under their quotas, pays for each once, keeps every answer.

Holds the public names and the version. Each name is loaded on first use, so that importing the
package costs next to nothing and a part that is not used is never read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bench.evaluation.door.ask import Ask, CallFailed
    from .bench.evaluation.door.benchmark import ItemBenchmark
    from .bench.evaluation.door.data_command import DataCommand, DataReport
    from .bench.evaluation.door.item import Item
    from .bench.evaluation.door.label import Label, LabelChoice
    from .bench.evaluation.door.record import Record
    from .bench.task.judge import judge
    from .bench.task.result import Evaluation
    from .bench.task.scorers import choice, match, numeric, regex
    from .bench.task.task import Task
    from .configuration.benchmark_options import SharedOptions
    from .configuration.declared_options import Option
    from .engine.attempts.prices import Price
    from .engine.attempts.retry import RetryPolicy
    from .engine.call import Call, Citation, Failure, Hit, Message, Outcome, Reply, TokenLogprob, Usage
    from .engine.content import Image, Native, Tool, ToolCall, ToolResult
    from .engine.endpoint import EncodeError, Fault, Request, Response
    from .engine.events import Event
    from .engine.fault import LocalFault, Stop, Stopped
    from .engine.lane import Lane
    from .engine.sink import Sink
    from .interfaces.python.evaluate import EvaluationStopped, evaluate
    from .metrics.statistics.comparisons import Comparison, compare
    from .metrics.statistics.intervals import Interval, interval
    from .providers.credentials.authorizer import Authorizer, bearer, key_in
    from .providers.kinds import Credentials, Kind
    from .providers.llm.protocol import Target, WireProtocol, request_of
    from .providers.pages.page import Page
    from .providers.search.joined import Found
    from .providers.search.query import Reach
    from .providers.search.table import SearchEngine
    from .providers.table import Provider
    from .wiring import ConfigurationError, Settings
    from .wiring.engine import Engine
    from .wiring.sinks import OpenedSink, open_sink
    from .wiring.statistics import LaneStatistics, Statistics
    from .wiring.sync_engine import SyncEngine

    __version__: str

__all__ = [
    "Ask",
    "Authorizer",
    "Call",
    "CallFailed",
    "Citation",
    "Comparison",
    "ConfigurationError",
    "Credentials",
    "DataCommand",
    "DataReport",
    "EncodeError",
    "Engine",
    "Evaluation",
    "EvaluationStopped",
    "Event",
    "Failure",
    "Fault",
    "Found",
    "Hit",
    "Image",
    "Interval",
    "Item",
    "ItemBenchmark",
    "Kind",
    "Label",
    "LabelChoice",
    "Lane",
    "LaneStatistics",
    "LocalFault",
    "Message",
    "Native",
    "OpenedSink",
    "Option",
    "Outcome",
    "Page",
    "Price",
    "Provider",
    "Reach",
    "Record",
    "Reply",
    "Request",
    "Response",
    "RetryPolicy",
    "SearchEngine",
    "Settings",
    "SharedOptions",
    "Sink",
    "Statistics",
    "Stop",
    "Stopped",
    "SyncEngine",
    "Target",
    "Task",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "WireProtocol",
    "bearer",
    "choice",
    "compare",
    "evaluate",
    "interval",
    "judge",
    "key_in",
    "match",
    "numeric",
    "open_sink",
    "regex",
    "request_of",
]

_HOMES = {
    "Ask": "bench.evaluation.door.ask",
    "Authorizer": "providers.credentials.authorizer",
    "Call": "engine.call",
    "CallFailed": "bench.evaluation.door.ask",
    "Citation": "engine.call",
    "Comparison": "metrics.statistics.comparisons",
    "ConfigurationError": "wiring",
    "Credentials": "providers.kinds",
    "DataCommand": "bench.evaluation.door.data_command",
    "DataReport": "bench.evaluation.door.data_command",
    "EncodeError": "engine.endpoint",
    "Engine": "wiring.engine",
    "Evaluation": "bench.task.result",
    "EvaluationStopped": "interfaces.python.evaluate",
    "Event": "engine.events",
    "Failure": "engine.call",
    "Fault": "engine.endpoint",
    "Found": "providers.search.joined",
    "Hit": "engine.call",
    "Image": "engine.content",
    "Interval": "metrics.statistics.intervals",
    "Item": "bench.evaluation.door.item",
    "ItemBenchmark": "bench.evaluation.door.benchmark",
    "Kind": "providers.kinds",
    "Label": "bench.evaluation.door.label",
    "LabelChoice": "bench.evaluation.door.label",
    "Lane": "engine.lane",
    "LaneStatistics": "wiring.statistics",
    "LocalFault": "engine.fault",
    "Message": "engine.call",
    "Native": "engine.content",
    "OpenedSink": "wiring.sinks",
    "Option": "configuration.declared_options",
    "Outcome": "engine.call",
    "Page": "providers.pages.page",
    "Price": "engine.attempts.money",
    "Provider": "providers.table",
    "Reach": "providers.search.query",
    "Record": "bench.evaluation.door.record",
    "Reply": "engine.call",
    "Request": "engine.endpoint",
    "Response": "engine.endpoint",
    "RetryPolicy": "engine.attempts.retry",
    "SearchEngine": "providers.search.table",
    "Settings": "wiring",
    "SharedOptions": "configuration.benchmark_options",
    "Sink": "engine.sink",
    "Statistics": "wiring.statistics",
    "Stop": "engine.fault",
    "Stopped": "engine.fault",
    "SyncEngine": "wiring.sync_engine",
    "Target": "providers.llm.protocol",
    "Task": "bench.task.task",
    "TokenLogprob": "engine.call",
    "Tool": "engine.content",
    "ToolCall": "engine.content",
    "ToolResult": "engine.content",
    "Usage": "engine.call",
    "WireProtocol": "providers.llm.protocol",
    "bearer": "providers.credentials.authorizer",
    "choice": "bench.task.scorers",
    "compare": "metrics.statistics.comparisons",
    "evaluate": "interfaces.python.evaluate",
    "interval": "metrics.statistics.intervals",
    "judge": "bench.task.judge",
    "key_in": "providers.credentials.authorizer",
    "match": "bench.task.scorers",
    "numeric": "bench.task.scorers",
    "open_sink": "wiring.sinks",
    "regex": "bench.task.scorers",
    "request_of": "providers.llm.protocol",
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a misspelt name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module(".engine.version", __name__).VERSION
        home = _HOMES.get(name)
        if home is None:
            near = import_module(".engine.near_names", __name__).nearest(name, __all__, cutoff=0.7)
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}{near or f': its names are in dir({__name__})'}"
            )
        value = getattr(import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
