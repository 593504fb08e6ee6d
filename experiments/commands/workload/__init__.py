"""`ringleaf workload`: the models of training jobs, and making one from a torch module."""
