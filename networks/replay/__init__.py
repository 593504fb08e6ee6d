"""Replay of one switch: it gets the packets of a trace, and the packets it sends are compared."""
