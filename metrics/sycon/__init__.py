"""SYCON-Bench: how long a stance is held in a conversation of five turns, and how often it changes."""
