"""Names and numbers that p4c, or we, give to what no program declares."""

VALID = "$valid$"  # the hidden field that says whether a header is there
STANDARD = "standard_metadata"
STACKS = "$stacks"  # the "header" of how many elements of each stack are in use: BMv2's `next`
NO_ACTION = (1 << 32) - 1  # the number of what does nothing, and no program has
