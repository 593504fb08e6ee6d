"""Training jobs as a network sees them: what they compute, and what they reduce when."""
