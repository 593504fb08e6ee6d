"""What a training job does when it loses hosts: each file is a recovery."""
