"""Convolutions as one matrix product, under XLA."""
