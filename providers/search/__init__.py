"""Search engines: one file of pure encode and decode for each, and the joining of pages of results."""
