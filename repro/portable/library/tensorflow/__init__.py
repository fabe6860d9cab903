"""The library for TensorFlow: users import it as repro.portable.tensorflow."""
