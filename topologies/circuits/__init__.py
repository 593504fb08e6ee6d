"""Controllers of circuits, a file each."""
