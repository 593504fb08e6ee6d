"""The exchange of embedding vectors between NICs, forward and backward."""
