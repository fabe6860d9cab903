"""Backends: one framework's arithmetic each, over which definitions are written."""
