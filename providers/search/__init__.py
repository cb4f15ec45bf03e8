"""Search engines: one file of pure encode and decode for each, and what joins pages of results."""
