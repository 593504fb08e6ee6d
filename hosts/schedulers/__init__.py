"""Flow schedulers: which gradients go when, and with what priority."""
