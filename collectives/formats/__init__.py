"""The formats of schedules' files, a file each: its name is the suffix of theirs."""
