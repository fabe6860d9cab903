"""Portable operations for users: functions, modules or layers, optimizers."""
