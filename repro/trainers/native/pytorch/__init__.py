"""Fast parts of mnist_pytorch.py."""
