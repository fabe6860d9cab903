"""Draws numbers while it is imported, as the real one does."""

from random import getrandbits

first = getrandbits(24)
