"""Allreduce of tensors that are mostly zero: what is sent depends on the data."""
