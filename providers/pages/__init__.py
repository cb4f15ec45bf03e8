"""Web pages: the guard before the socket, one hop at a time, robots.txt, and texts out of bytes."""
