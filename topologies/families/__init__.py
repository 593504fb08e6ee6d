"""The families of topologies, a file each: its name is the family's."""
