"""Gradient routing: which switch adds up whose gradients, solved for a topology."""
