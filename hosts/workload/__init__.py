"""Workloads as graphs of work: what each rank computes and exchanges, and in which order."""
