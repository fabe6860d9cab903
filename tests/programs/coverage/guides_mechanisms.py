"""Programs of TensorFlow's guides: mechanisms of its own, with small networks."""
