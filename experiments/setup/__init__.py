"""The network of a run, the places of its ranks, and the wires between them."""
