"""Hosts and switches on real network interfaces, in wall-clock time."""
