"""SYCON-Bench: does a model give up its stance, or the facts, when a user disagrees with it for five turns?"""
