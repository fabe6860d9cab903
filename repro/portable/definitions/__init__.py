"""Operations of portable numerics, each once.

An operation is a forward and a backward over a backend, `xp` (repro/portable/definitions/xp.py), whatever the framework. The
specification is docs/reference/specification.md; reference/, which shares no code with these definitions, computes what they must.
"""
