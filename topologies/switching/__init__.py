"""Circuits: what controllers are told and return, and the algorithms that they use."""
