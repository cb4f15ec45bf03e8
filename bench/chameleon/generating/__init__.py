"""Generates conversations with a model: topics, questions, and which of them are accepted."""
