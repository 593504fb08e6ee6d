"""Recoveries of a training job that loses hosts, a file each."""
