"""A2TP: ATP with feedback on aggregators, and a window for them."""
