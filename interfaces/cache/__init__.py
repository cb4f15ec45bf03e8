"""The contents of a cache: listed, written to files, and compared with a call to explain a hit or a miss."""
