"""When a call may go: what is declared of a lane, what is learned, the queue to a model, the gate of each API key."""
