"""p4c's Simple Test Framework (STF): packets in, packets that must come out."""
