"""`ringleaf workload`: models that training jobs have, and how one is made of a torch module."""
