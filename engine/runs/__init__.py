"""What a run leaves in its folder: journals, manifest, the ids of each pair, the proof that nothing is missing."""
