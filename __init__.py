"""Millstream: runs very many calls under their quotas, pays for each once, keeps every answer.

Holds the public names and the version. Each name is loaded on first use, so that importing the
package costs next to nothing and a part that is not used is never read.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # true for type checkers, which know this name; `typing` takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from .bench.evaluation.door.ask import Ask as Ask
    from .bench.evaluation.door.ask import CallFailed as CallFailed
    from .bench.evaluation.door.benchmark import ItemBenchmark as ItemBenchmark
    from .bench.evaluation.door.data_command import DataCommand as DataCommand
    from .bench.evaluation.door.data_command import DataReport as DataReport
    from .bench.evaluation.door.item import Item as Item
    from .bench.evaluation.door.label import Label as Label
    from .bench.evaluation.door.label import LabelChoice as LabelChoice
    from .bench.evaluation.door.record import Record as Record
    from .bench.task.asking_scorer import scorer as scorer
    from .bench.task.choices import choice as choice
    from .bench.task.figures import auroc as auroc
    from .bench.task.figures import calibration_error as calibration_error
    from .bench.task.figures import f1 as f1
    from .bench.task.figures import pass_at as pass_at
    from .bench.task.judge import judge as judge
    from .bench.task.likelihood import loglikelihood as loglikelihood
    from .bench.task.messages import assistant as assistant
    from .bench.task.messages import system as system
    from .bench.task.messages import user as user
    from .bench.task.parameters import parameter as parameter
    from .bench.task.result import Evaluation as Evaluation
    from .bench.task.scorers import match as match
    from .bench.task.scorers import numeric as numeric
    from .bench.task.scorers import regex as regex
    from .bench.task.steps_ask import StepAsk as StepAsk
    from .bench.task.steps_class import Benchmark as Benchmark
    from .bench.task.task import Task as Task
    from .bench.task.tool_loop import tool_loop as tool_loop
    from .bench.task.win_rate import win_rate as win_rate
    from .bench.tools.mcp_server import mcp as mcp
    from .configuration.benchmark_options import SharedOptions as SharedOptions
    from .configuration.declared_options import Option as Option
    from .engine.attempts.retry import RetryPolicy as RetryPolicy
    from .engine.call import Call as Call
    from .engine.call import Citation as Citation
    from .engine.call import Failure as Failure
    from .engine.call import Hit as Hit
    from .engine.call import Message as Message
    from .engine.call import Outcome as Outcome
    from .engine.call import Reply as Reply
    from .engine.call import TokenLogprob as TokenLogprob
    from .engine.call import Usage as Usage
    from .engine.content import Image as Image
    from .engine.content import Native as Native
    from .engine.content import Tool as Tool
    from .engine.content import ToolCall as ToolCall
    from .engine.content import ToolResult as ToolResult
    from .engine.endpoint import EncodeError as EncodeError
    from .engine.endpoint import Fault as Fault
    from .engine.endpoint import Request as Request
    from .engine.endpoint import Response as Response
    from .engine.events import Event as Event
    from .engine.fault import LocalFault as LocalFault
    from .engine.fault import Stop as Stop
    from .engine.fault import Stopped as Stopped
    from .engine.lane import Lane as Lane
    from .engine.prices import Price as Price
    from .engine.sink import Sink as Sink
    from .interfaces.python.evaluate import EvaluationStopped as EvaluationStopped
    from .interfaces.python.evaluate import evaluate as evaluate
    from .metrics.statistics.comparisons import Comparison as Comparison
    from .metrics.statistics.comparisons import compare as compare
    from .metrics.statistics.intervals import Interval as Interval
    from .metrics.statistics.intervals import interval as interval
    from .providers.credentials.authorizer import Authorizer as Authorizer
    from .providers.credentials.authorizer import bearer as bearer
    from .providers.credentials.authorizer import key_in as key_in
    from .providers.kinds import Credentials as Credentials
    from .providers.kinds import Kind as Kind
    from .providers.llm.protocol import Target as Target
    from .providers.llm.protocol import WireProtocol as WireProtocol
    from .providers.llm.protocol import request_of as request_of
    from .providers.pages.page import Page as Page
    from .providers.search.joined import Found as Found
    from .providers.search.query import Reach as Reach
    from .providers.search.table import SearchEngine as SearchEngine
    from .providers.table import Provider as Provider
    from .wiring import ConfigurationError as ConfigurationError
    from .wiring import Settings as Settings
    from .wiring.engine import Engine as Engine
    from .wiring.sinks import OpenedSink as OpenedSink
    from .wiring.sinks import open_sink as open_sink
    from .wiring.statistics import LaneStatistics as LaneStatistics
    from .wiring.statistics import Statistics as Statistics
    from .wiring.sync_engine import SyncEngine as SyncEngine

    __version__: str

# By module, as above for type checkers.
_NAMES = {
    "bench.evaluation.door.ask": ("Ask", "CallFailed"),
    "bench.evaluation.door.benchmark": ("ItemBenchmark",),
    "bench.evaluation.door.data_command": ("DataCommand", "DataReport"),
    "bench.evaluation.door.item": ("Item",),
    "bench.evaluation.door.label": ("Label", "LabelChoice"),
    "bench.evaluation.door.record": ("Record",),
    "bench.task.figures": ("auroc", "calibration_error", "f1", "pass_at"),
    "bench.task.judge": ("judge",),
    "bench.task.likelihood": ("loglikelihood",),
    "bench.task.parameters": ("parameter",),
    "bench.task.result": ("Evaluation",),
    "bench.task.steps_ask": ("StepAsk",),
    "bench.task.steps_class": ("Benchmark",),
    "bench.task.messages": ("assistant", "system", "user"),
    "bench.task.asking_scorer": ("scorer",),
    "bench.task.choices": ("choice",),
    "bench.task.scorers": ("match", "numeric", "regex"),
    "bench.task.task": ("Task",),
    "bench.task.tool_loop": ("tool_loop",),
    "bench.task.win_rate": ("win_rate",),
    "bench.tools.mcp_server": ("mcp",),
    "configuration.benchmark_options": ("SharedOptions",),
    "configuration.declared_options": ("Option",),
    "engine.prices": ("Price",),
    "engine.attempts.retry": ("RetryPolicy",),
    "engine.call": ("Call", "Citation", "Failure", "Hit", "Message", "Outcome", "Reply", "TokenLogprob", "Usage"),
    "engine.content": ("Image", "Native", "Tool", "ToolCall", "ToolResult"),
    "engine.endpoint": ("EncodeError", "Fault", "Request", "Response"),
    "engine.events": ("Event",),
    "engine.fault": ("LocalFault", "Stop", "Stopped"),
    "engine.lane": ("Lane",),
    "engine.sink": ("Sink",),
    "interfaces.python.evaluate": ("EvaluationStopped", "evaluate"),
    "metrics.statistics.comparisons": ("Comparison", "compare"),
    "metrics.statistics.intervals": ("Interval", "interval"),
    "providers.credentials.authorizer": ("Authorizer", "bearer", "key_in"),
    "providers.kinds": ("Credentials", "Kind"),
    "providers.llm.protocol": ("Target", "WireProtocol", "request_of"),
    "providers.pages.page": ("Page",),
    "providers.search.joined": ("Found",),
    "providers.search.query": ("Reach",),
    "providers.search.table": ("SearchEngine",),
    "providers.table": ("Provider",),
    "wiring": ("ConfigurationError", "Settings"),
    "wiring.engine": ("Engine",),
    "wiring.sinks": ("OpenedSink", "open_sink"),
    "wiring.statistics": ("LaneStatistics", "Statistics"),
    "wiring.sync_engine": ("SyncEngine",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


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
