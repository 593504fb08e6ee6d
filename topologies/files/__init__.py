"""Topologies that users bring in files, and files of all topologies."""
