"""OmniReduce with its aggregator in the switches."""
