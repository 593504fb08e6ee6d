"""Collectives on a topology: every algorithm at every size."""
