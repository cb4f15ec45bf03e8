"""Tools that a model may call in a benchmark: Python functions and MCP servers, and the loop of an agent.

Knows no benchmark and no journal. How a result is kept: the caller's.
"""
