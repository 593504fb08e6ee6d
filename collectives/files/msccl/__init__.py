"""Programs in MSCCL's XML: read, followed as sets of contributions, made rows, and written."""
