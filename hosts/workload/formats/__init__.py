"""Files of graphs of work: Chakra execution traces and GOAL schedules."""
