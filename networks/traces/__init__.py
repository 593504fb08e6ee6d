"""What a trace of a switch is made of: packet captures, P4Runtime entries, a manifest."""
