"""Random cases for as long as one likes: whole networks, and broken or hostile inputs."""
