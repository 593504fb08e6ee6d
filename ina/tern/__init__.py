"""Ternary gradients, which switches add up."""
