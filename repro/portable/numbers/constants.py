"""Constants of the specification.

docs/reference/specification.md proves that they are right.
"""

BITS = 13
"""An operand of a sum of products is an integer of at most 2^BITS in magnitude, times a power of two."""
SIGNIFICAND = 53
"""float64 holds integers of up to 2^53: sums of 2^27 products, of 2^29 numbers, of 2^30 where their mean is taken."""
SUM_BITS = 24
"""A number in a sum of numbers is an integer of at most 2^SUM_BITS, which float32 holds, times a power of two."""
MEAN_BITS = 23
"""SUM_BITS where the mean is subtracted from each number again: float32 holds the difference, too."""
SMALLEST = -100
"""Magnitudes below 2^SMALLEST become +0 where a number is rounded to float32, and grids are no finer than for it."""
TINY = 2.0**SMALLEST
BELOW_TINY = TINY - 2.0 ** (SMALLEST - 24)
"""The largest float32 below it."""

EXP_BITS = 20
"""exp is taken of multiples of 2^-EXP_BITS."""
EXP_SPLIT = 13
"""Bits of exp's index that belong to the second of its two tables."""
POWER_BITS = 40
"""The summands of a softmax' denominator are multiples of 2^-POWER_BITS."""
LOSS_BITS = 24
"""Losses of samples are multiples of 2^-LOSS_BITS."""
LARGEST_DISTANCE = 2.0**12
"""The largest distance of a logit from the largest one, in a loss; greater ones are clipped."""
NODE_BITS, STEP_BITS, VALUE_BITS = 10, 20, 50
"""Activations are linear between nodes at multiples of 2^-NODE_BITS, and taken of multiples of 2^-STEP_BITS; nodes and
slopes are multiples of 2^-VALUE_BITS."""

# --- of the trainers' networks----------------------------------------------------------------------------------------

SCALE = 54667345 * 2.0**-32
"""1 / (255 0.3081) in 26 bits: a pixel enters as pixel SCALE - SHIFT, and the product is exact."""
SHIFT = 0.1307 / 0.3081
BETA1, BETA2, EPSILON = 0.8999999761581421, 0.9990000128746033, 1e-8
"""Adam's: the float32 numbers nearest to 0.9 and 0.999, so that their products with the float32 state are exact."""
RHO, ADADELTA_EPSILON = 0.949999988079071, 1e-7
"""Adadelta's: the float32 number nearest to 0.95."""
