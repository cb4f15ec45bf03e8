"""MillStone: the data set, the draws, the prompts, the grid of calls and the records of their answers.

Everything here is a pure function of the data set and the options: nothing is sent, and no clock or
random source is read. Scores are in `millstream.metrics`.
"""
