"""How requests travel: connections, deadlines, decompression, and the endpoint of a model."""
