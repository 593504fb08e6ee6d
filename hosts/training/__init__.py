"""Training jobs as a network sees them: their computations, and the gradients they reduce."""
