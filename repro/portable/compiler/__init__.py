"""Definitions compiled for a CPU. README.md says why."""
