"""Portable operations for users: functions, modules or layers, optimizers.

functional.py has the functions of JAX and TensorFlow, over the parts of a framework that framework.py names.
"""
