"""Switches as P4Runtime servers: entities, and the gRPC service on them."""
