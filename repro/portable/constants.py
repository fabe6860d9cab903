"""The numbers of the specification, docs/portable.md, which proves that they are right."""

BITS = 13
"""An operand of a sum of products is an integer of at most 2^BITS in magnitude, times a power of two."""
LONGEST = 2**27
"""Products of two operands in one sum: their sum is an integer of at most 2^53, which float64 holds."""
SUM_BITS = 24
"""A number in a sum of numbers is an integer of at most 2^SUM_BITS, which float32 holds, times a power of two."""
MEAN_BITS = 23
"""The same where the mean is taken away from each number again: float32 holds the difference, too."""
SMALLEST = -100
"""Magnitudes below 2^SMALLEST become +0 where a number is rounded to float32, and grids are no finer than for it."""
TINY = 2.0**SMALLEST

EXP_BITS = 20
"""exp is taken of multiples of 2^-EXP_BITS."""
EXP_SPLIT = 13
"""Of the bits of its index, those of the second of its two tables."""
POWER_BITS = 40
"""The summands of a softmax' denominator are multiples of 2^-POWER_BITS, or of fewer bits in rows above 2^13."""
LOSS_BITS = 24
"""Losses of samples are multiples of 2^-LOSS_BITS."""
LARGEST_DISTANCE = 2.0**12
"""How far below the largest logit another one may count as, in a loss."""
NODE_BITS, STEP_BITS, VALUE_BITS = 10, 20, 50
"""Activations are linear between nodes at multiples of 2^-NODE_BITS, and taken of multiples of 2^-STEP_BITS; nodes and
slopes are multiples of 2^-VALUE_BITS."""
