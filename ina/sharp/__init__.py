"""SHARP: static trees of aggregation nodes, with few requests in flight, or streaming."""
