"""Conversations written by a model: topics, questions, and which of them are taken."""
