"""ATP: switches add up what they have aggregators for, parameter servers the rest (NSDI 2021)."""
