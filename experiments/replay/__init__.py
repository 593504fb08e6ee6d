"""`ringleaf replay`: traces of switches as regression tests."""
