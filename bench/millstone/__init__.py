"""MillStone: the data set, the draws, the prompts, the grid of calls and the records of their answers.

Owns this benchmark from its options to its part of the report. Scores are computed in `millstream.metrics`.
"""
