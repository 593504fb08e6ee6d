"""Inputs of runs, what carries them, and the judgement of their results."""
