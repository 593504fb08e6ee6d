"""Grade a student's schedule or P4 program by an assignment's cases."""
