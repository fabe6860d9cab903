"""Compiles definitions over PyTorch's tensors."""
