"""MillStone's formulas: stances, openness, shifts, arguments and baselines, numpy in and numbers out."""
