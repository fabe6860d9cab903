"""Portable numerics in PyTorch."""
