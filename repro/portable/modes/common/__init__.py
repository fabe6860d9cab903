"""Shared parts of the three modes."""
