"""OmniReduce: hosts that aggregate, and workers that send them only blocks that aren't zero."""
