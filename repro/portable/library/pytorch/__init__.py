"""The library for PyTorch: users import it as repro.portable.pytorch."""
