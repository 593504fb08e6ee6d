"""Allocators of switches' memory."""
