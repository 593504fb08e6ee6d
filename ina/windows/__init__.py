"""The ways in which the congestion window of ATP's workers changes: a file for each."""
