"""Keras Applications."""
