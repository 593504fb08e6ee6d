"""P4 programs of the user's, and the entries of their tables, in files of several forms."""
