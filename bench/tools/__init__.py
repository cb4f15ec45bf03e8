"""Tools that a model may call in a benchmark: Python functions and servers of the Model Context Protocol.

Knows no benchmark and no journal. How a result is kept: the caller's.
"""
