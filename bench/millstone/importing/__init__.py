"""Builds a data set: from the authors' released folders, from saved pages, and with paraphrases written by a model.

Reads leniently and reports every problem; writes files that `millstream.bench.millstone.dataset` can read.
"""
