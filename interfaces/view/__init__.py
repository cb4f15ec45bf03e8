"""The live page of runs: a server on loopback that follows run folders, and the page that asks it."""
