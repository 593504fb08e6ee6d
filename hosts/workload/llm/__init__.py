"""Language models trained in parallel, as graphs of work made from their sizes."""
