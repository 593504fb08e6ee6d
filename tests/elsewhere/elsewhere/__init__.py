"""A package of somebody else, which adds one member to each family by an entry point."""
