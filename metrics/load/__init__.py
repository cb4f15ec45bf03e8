"""The figures of a load test: the structs of its file, and what is computed from them."""
