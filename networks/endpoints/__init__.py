"""The hosts of any network: their agents, their memory, and the collectives they run."""
