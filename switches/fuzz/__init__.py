"""Random entries and packets for a program, through the engine and through BMv2."""
