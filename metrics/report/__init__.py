"""The report as data: tables of every figure, the published ones beside them, and charts of these tables."""
