"""PANAMA: SwitchML's switches in several trees, and workers with a window for each."""
