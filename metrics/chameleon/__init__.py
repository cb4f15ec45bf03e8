"""Chameleon's numbers: traces of stances and sources, and what follows from them. Pure functions, no I/O."""
