"""Traces of switches: packet captures, P4Runtime entries, a manifest."""
