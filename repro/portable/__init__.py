"""Portable numerics: the same bits everywhere.

In three frameworks, on any device. README.md says what stands where, docs/reference/specification.md what is computed.
"""
