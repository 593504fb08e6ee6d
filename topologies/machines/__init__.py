"""Machines with several GPUs, one a file: the parts of each, and where their figures come from."""
