"""Programs of other kinds: recurrent, generative, reinforcement, graphs, functional."""

from evidence.coverage import functional, generative, sequences

__all__ = ["functional", "generative", "sequences"]
