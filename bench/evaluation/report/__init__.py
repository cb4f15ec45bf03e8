"""The general part of a report: for every benchmark that has no page of its own."""
