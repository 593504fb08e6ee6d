"""Majority votes of signSGD, which switches count."""
