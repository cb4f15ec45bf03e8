"""SYCON-Bench's part of a report."""
