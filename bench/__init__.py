"""What is run: MillStone, Chameleon, load. Each is a lazy stream of calls; knows the engine, no provider."""
