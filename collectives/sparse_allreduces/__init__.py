"""The sparse allreduces, a file each: its name is the allreduce's."""
