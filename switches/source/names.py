"""Names and numbers of things that no program declares, given by p4c or by us."""

VALID = "$valid$"  # the hidden field that says whether a header is there
STANDARD = "standard_metadata"
STACKS = "$stacks"  # the "header" with each stack's number of elements in use: BMv2's `next`
NO_ACTION = (1 << 32) - 1  # the number of an action that does nothing, and that no program has
