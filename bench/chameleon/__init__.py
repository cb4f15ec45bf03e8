"""Chameleon: does a model change its stance over the turns of a conversation with search?"""
