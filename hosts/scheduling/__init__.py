"""Flow scheduling: which gradients go when, and with what priority."""
