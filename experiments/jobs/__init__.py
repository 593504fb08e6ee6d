"""Training jobs that share a network: what a spec with `jobs:` runs."""
