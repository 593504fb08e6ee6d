"""Published figures, what was found beside them, and the table of all that has a name."""
