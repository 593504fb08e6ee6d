"""A neural network whose layers are computed by NICs, one behind the other."""
