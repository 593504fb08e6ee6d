"""One switch, fed with what a trace says it received; what it sends is compared."""
