"""Fused steps of optimizers: of a variable, its slots and a gradient."""
