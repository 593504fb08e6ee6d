"""The synthesisers: each file is one, with a constant SYNTHESISER."""
