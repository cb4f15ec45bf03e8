"""Metrics: numbers from records. Pure functions, numpy in and plain numbers out; no file, no clock, no network."""
