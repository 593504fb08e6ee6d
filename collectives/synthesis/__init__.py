"""Synthesised collectives: schedules that are searched for one network (docs/synthesis.md)."""
