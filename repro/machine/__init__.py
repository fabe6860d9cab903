"""Facts of the machine and its environment."""
