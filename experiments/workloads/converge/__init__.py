"""Training with compressed gradients: loss over steps, bytes and simulated time."""
