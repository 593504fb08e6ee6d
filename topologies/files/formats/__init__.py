"""A file per format: `FORMAT` reads and writes it."""
