"""Kinds of workloads: a folder for each, with what only that kind has."""
