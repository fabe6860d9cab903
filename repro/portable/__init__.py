"""Portable numerics: the same bits in three frameworks, on any device. The rules are in docs/portable.md."""
