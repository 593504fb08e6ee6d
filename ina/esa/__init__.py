"""ESA: ATP whose aggregators go to the most urgent blocks."""
