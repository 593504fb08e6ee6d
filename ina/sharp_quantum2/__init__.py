"""SHARP as on Quantum-2, whose switches have a streaming tree per port."""
