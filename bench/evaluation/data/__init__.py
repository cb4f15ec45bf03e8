"""Reads the rows of data sets, and asks models to build them."""
