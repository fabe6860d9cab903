"""The trainers' operations in portable numerics, a file for each framework."""
