"""Memory and time of a run, foretold, and what this machine has."""
