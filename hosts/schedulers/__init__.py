"""Flow schedulers: which gradients go when, with what priority, and how fast."""
