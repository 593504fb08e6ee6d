"""Flow scheduling: the order, times and priorities of gradients' transfers."""
