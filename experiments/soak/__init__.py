"""Many random cases, for as long as one likes: here, hostile input (`hostile.py`)."""
