"""The algorithms, a file each: its name is the algorithm's, with hyphens for underscores."""
