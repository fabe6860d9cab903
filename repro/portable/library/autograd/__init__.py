"""Definitions as functions that a framework can differentiate."""
