"""Training jobs that share a network, as a spec with `jobs:` runs them."""
