"""The name of a schema, which OpenAI's protocols want."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call
from millstream.providers.llm.protocol import named_schema


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"title": "Stance"}, "Stance"),
        ({"title": "My stance, 2nd – ✓"}, "My_stance__2nd____"),
        ({"title": "x" * 100}, "x" * 64),
        ({"title": ""}, "answer"),
        ({"title": 7}, "answer"),
        ({}, "answer"),
    ],
)
def test_a_schema_has_a_name_that_openai_takes(schema: dict[str, Any], name: str) -> None:
    named = named_schema(Call("mylab/m", "x", json_schema=schema))
    assert orjson.loads(orjson.dumps(named)) == {"name": name, "schema": schema, "strict": True}
