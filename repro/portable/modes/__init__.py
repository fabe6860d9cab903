"""Portable numerics for any program: a folder for each framework."""
