"""A stand-in for what scikit-learn imports."""
