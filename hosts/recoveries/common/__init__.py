"""Parts that recoveries share: plans, copies, passes in order, and the course of a training."""
