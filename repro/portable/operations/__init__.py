"""The operations of portable numerics, each once: what is computed, forward and backward, over a backend.

A backend (repro/portable/pytorch/backend.py and its twins) is one framework's arithmetic: some thirty functions. The
specification is docs/portable.md; reference.py, which shares no code with these definitions, judges them.
"""
