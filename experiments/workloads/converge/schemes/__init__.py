"""The ways to train, a file each."""
