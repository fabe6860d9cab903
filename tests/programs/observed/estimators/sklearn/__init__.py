"""A stand-in for scikit-learn, which no environment of the tests has."""

__version__ = "1.9"
