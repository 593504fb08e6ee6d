"""Trainings in pipelines that lose hosts, and recover: goodput, lost work, time to recover."""
