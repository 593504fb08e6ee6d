"""Schedules in files: formats that Ringleaf reads and writes, and their use as algorithms."""
