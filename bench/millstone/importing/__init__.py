"""Building a data set: from the authors' released folders, from saved pages, and with paraphrases written by a model.

Reads leniently and reports everything; what it writes, `millstream.bench.millstone.dataset` reads.
"""
