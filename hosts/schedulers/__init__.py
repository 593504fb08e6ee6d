"""The flow schedulers, a file each: its name is the scheduler's."""
