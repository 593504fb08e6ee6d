"""Training scripts whose `torch.distributed` calls are carried by an emulated network."""
