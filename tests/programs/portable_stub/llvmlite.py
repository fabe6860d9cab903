"""Stand-in for llvmlite."""
