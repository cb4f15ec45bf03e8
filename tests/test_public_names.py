"""The names that users import, and what they cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

import millstream

NAMES = [
    "Ask",
    "Authorizer",
    "Benchmark",
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
    "StepAsk",
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
    "assistant",
    "auroc",
    "bearer",
    "calibration_error",
    "choice",
    "compare",
    "evaluate",
    "f1",
    "interval",
    "judge",
    "key_in",
    "loglikelihood",
    "match",
    "mcp",
    "numeric",
    "open_sink",
    "parameter",
    "pass_at",
    "regex",
    "request_of",
    "scorer",
    "system",
    "tool_loop",
    "user",
    "win_rate",
]


def test_the_public_names_are_these() -> None:
    assert millstream.__all__ == NAMES
    assert set(NAMES) <= set(dir(millstream))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_leads_to_what_is_called_so(name: str) -> None:
    assert getattr(millstream, name).__name__ == name


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    misspelt = "Calls"
    with pytest.raises(AttributeError, match=r"no attribute 'Calls' \(nearest: Call\)$"):
        getattr(millstream, misspelt)


def test_importing_the_package_loads_none_of_its_parts() -> None:
    program = (
        "import sys, millstream; print(*(n for n in sys.modules if n.startswith(('millstream.', 'aiohttp', 'numpy'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
