"""Workloads that NICs compute: their command, runs, results, figures and reports."""
