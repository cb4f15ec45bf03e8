"""Web pages: the check of an address before a socket opens, single hops, robots.txt, and texts out of bytes."""
