"""Lossy compression of gradients, before and after any allreduce; pure."""
