"""SYCON-Bench: does a model give up its stance, or the facts, when a user goes on disagreeing for five turns?"""
