"""The hosts of any network: their agents, their memory, and collectives on their way."""
