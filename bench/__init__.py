"""What is run: MillStone, Chameleon, load. Each asks through the engine and speaks no wire protocol."""
