"""Congestion control of rc's queue pairs: a file for each, and a line in the registry."""
