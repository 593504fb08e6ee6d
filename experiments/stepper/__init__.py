"""Collectives step by step: a story computed once, told by a terminal, plain text or a page."""
