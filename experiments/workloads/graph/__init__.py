"""Runs that replay a graph of work: an execution trace, or a model in parallel."""
