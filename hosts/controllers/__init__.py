"""The congestion controllers, a file each: its name is the controller's."""
