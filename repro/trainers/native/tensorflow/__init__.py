"""Fast parts of mnist_tensorflow.py."""
