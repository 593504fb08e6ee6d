"""The workloads that NICs are given, a file each."""
