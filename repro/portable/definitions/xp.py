"""The backend: one framework's arithmetic, as a type.

Operations are written over a parameter `xp: Backend`. The class of each file in repro/portable/backends/ has these
methods, with these parameters, in this order, but for those that it inherits from defaults.py beside this file;
tests/portable/test_backends.py compares them. An array is an array or tensor of the framework; shapes are known. Methods
neither change their arguments nor broadcast unless they say so.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Array = Any
"""An array or tensor of the framework of the backend."""
Axes = tuple[int, ...]


class Backend(Protocol):
    """The arithmetic that every operation is written over: on any device, eager or compiled."""

    nan: float
    inf: float
    ranks: Any
    """The processes that share a batch: one, unless an application exchanges sums between several."""
    engine: str
    """Matmul backend of exact products: float64, or int8 or int16 with int32 sums. It changes no bit."""

    # --- numbers ------------------------------------------------------------------------------------------------------
    # Python's operators (+, -, *, /, &, ^, comparisons) broadcast, and keep float64 float64.

    def cast(self, x: Array, dtype: Any, /) -> Array:
        """Convert numbers to a type of the framework, or to the one of this name."""

    def f64(self, x: Array) -> Array:
        """Convert numbers of any shape and type to float64."""

    def f32(self, x: Array) -> Array:
        """Convert numbers that float32 holds to float32."""

    def r32(self, x: Array) -> Array:
        """Rounded once to float32, half to even; then magnitudes below 2^-100, and -0, become +0."""

    def rint(self, x: Array, /) -> Array:
        """The nearest integer, half to even: float32 or float64, as x."""

    def floor(self, x: Array, /) -> Array:
        """The largest integer that is not above x, float64."""

    def sqrt(self, x: Array, /) -> Array:
        """The square root, float64, correctly rounded."""

    def where(self, condition: Array, a: Any, b: Any, /) -> Array:
        """a where the condition, bool, holds, b elsewhere: arrays of one type, or numbers. All three broadcast."""

    def clip(self, x: Array, low: float, high: float, /) -> Array:
        """x, but low where it is below, and high where it is above; NaN stays."""

    def integer(self, x: Array) -> Array:
        """Integers held by a type of floats, or of fewer bits, as int32."""

    def int64(self, x: Array) -> Array:
        """Integers of any type as int64."""

    def int8(self, x: Array) -> Array:
        """Integers of up to 127 held by float32, as int8."""

    def int16(self, x: Array) -> Array:
        """Integers of up to 2^13 held by float32, as int16."""

    def shift_left(self, x: Array, bits: int) -> Array:
        """Integers, int32 or int64, with so many zeros behind their last bit."""

    def shift_right(self, x: Array, bits: int) -> Array:
        """Integers, int32 or int64, without their last bits."""

    def pattern(self, x: Array) -> Array:
        """The bits of a float: float32 -> int32, float64 -> int64."""

    def number(self, pattern: Array) -> Array:
        """The float of these bits: int32 -> float32, int64 -> float64."""

    # --- quantization grids -------------------------------------------------------------------------------------------

    def grids(self, x: Array, axes: Axes, bits: int, batch: bool) -> tuple[Array, Array]:
        """See definitions.grids.grids, which every backend may have faster."""

    # --- sums and products --------------------------------------------------------------------------------------------

    def sum(self, x: Array, axes: Axes) -> Array:
        """The sum of integers along the axes, axes of size 1: float32 or float64 -> float64, exact."""

    def largest(self, x: Array, axes: Axes) -> Array:
        """The largest of integers along the axes, axes of size 1: int32 or int64, none below 0."""

    def maximum_of(self, x: Array) -> Array:
        """The maximum along the last axis, of size 1 then; NaN where there is one."""

    def multiply_add(self, a: Array, b: Array, c: Array) -> Array:
        """a b + c, float64, of a product that is exact: fused or not, it rounds once."""

    def operands(self, a: Array, b: Array, work: int, groups: int = 1, layout: str = "") -> tuple[Array, Array]:
        """Two arrays of integers, float32, in the form in which the matmul backend takes them.

        work: multiplications. Of a convolution a are images with axes as in `layout`, b is the weight.
        """

    def operand_like(self, a: Array, b: Array) -> Array:
        """An array of integers, float32, in the form that another operand has."""

    def matmul(self, a: Array, b: Array) -> Array:
        """The product of matrices of integers, operands: [..., M, K], [..., K, N] -> float64 [..., M, N], exact."""

    def rounded_matmul(self, a: Array, b: Array, units: Array, plus: Array | None) -> Array:
        """The product of matrices of int16 in units, and `plus` added: see definitions.grids.rounded_product.

        [M, K], [K, N], float64 [M, 1], float32 [N] -> float32 [M, N], rounded once.
        """

    def convolve(self, q: Array, w: Array, *how: Any) -> Array:
        """The convolution of operands, images and weight -> images, float64, exact.

        how: stride, padding, dilation, groups and layout, as in definitions.convolution.
        """

    def convolve_with(self, q: Array, g: Array, shape: Axes, *how: Any) -> Array:
        """The gradient with respect to a weight of this shape, [O, h, w, I / groups], float64, exact."""

    def convolve_back(self, g: Array, w: Array, image: Axes, *how: Any) -> Array:
        """The gradient with respect to images of this shape, float64, exact."""

    def rounded_convolve(self, q: Array, w: Array, unit: Array, plus: Array | None, *how: Any) -> Array:
        """The convolution times a unit, float64, and `plus`, float32, added: float32, rounded once. Both broadcast."""

    def rounded_convolve_back(self, g: Array, w: Array, image: Axes, unit: Array, *how: Any) -> Array:
        """The gradient with respect to images of this shape times a unit, float64, which broadcasts: float32, rounded."""

    # --- shapes -------------------------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Sequence[int], /) -> Array:
        """Reshape; one size may be -1."""

    def stack(self, arrays: Sequence[Array], axis: int, /) -> Array:
        """Arrays of one shape along a new axis."""

    def broadcast_to(self, x: Array, shape: Sequence[int], /) -> Array:
        """x repeated along its axes of size 1."""

    def permute(self, x: Array, axes: Axes, /) -> Array:
        """x with its axes in another order."""

    def concatenate(self, arrays: Sequence[Array], axis: int, /) -> Array:
        """Arrays one after another along an axis."""

    def transpose(self, x: Array) -> Array:
        """x with its last two axes exchanged."""

    def pad(self, x: Array, edges: Sequence[tuple[int, int]], value: float = 0.0) -> Array:
        """x with this value before and after it: a pair of numbers for each axis."""

    # --- tables, indices ----------------------------------------------------------------------------------------------

    def tables(self, like: Array, made: Callable[..., Sequence[Any]], *arguments: Any) -> list[Array]:
        """The arrays that a function of repro.portable.numbers.tables makes, on the device of an array."""

    def take(self, table: Array, index: Array, /) -> Array:
        """Numbers of a table [N] by their index, int32, from 0 to N - 1, of any shape."""

    def take_rows(self, table: Array, index: Array, /) -> Array:
        """Rows of a table [N, C] by their index, of any shape -> [..., C]."""

    def add_at(self, index: Array, x: Array, rows: int) -> Array:
        """Rows of integers, [M, C], added up by their index [M] -> float64 [rows, C], exact."""

    def largest_at(self, index: Array, x: Array, rows: int) -> Array:
        """The largest of magnitudes [M, C] by their index [M] -> [rows, C]; 0 where there is none; NaN may count or not."""

    def one_hot(self, index: Array, classes: int) -> Array:
        """[M] -> float64 [M, classes]: 1 at the index, 0 elsewhere."""

    def causal(self, like: Array, rows: int, columns: int) -> Array:
        """bool [rows, columns]: a row sees the columns up to its own, the last row all."""

    def counting(self, like: Array, size: int) -> Array:
        """0, 1, 2, ..., int64 [size], on the device of an array."""

    # --- matrices, step by step ---------------------------------------------------------------------------------------

    def at(self, x: Array, place: Any, axis: int) -> Array:
        """The element at a place of an axis, which stays with size 1."""

    def take_along(self, x: Array, index: Array, axis: int) -> Array:
        """Numbers by their places along an axis: the other axes of the index are those of x, or of size 1."""

    def repeat(self, count: int, step: Callable[[Any, Any], Any], state: Any) -> Any:
        """The state after steps: each is a function of its number and of a state of fixed shapes."""

    def repeat_while(self, going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
        """The state after steps, functions of it, as long as a function of it gives a bool that holds."""

    def argsort(self, x: Array) -> Array:
        """The places of numbers along the last axis from the smallest on, equal ones in their order."""

    # --- ranks --------------------------------------------------------------------------------------------------------

    def total(self, x: Array) -> Array:
        """The sum over all ranks, of sums that are exact."""

    def of_rank(self, x: Array) -> Array:
        """This rank's part of an array of all samples, in their order along the first axis."""


class XlaBackend(Backend, Protocol):
    """Further methods of JAX's and TensorFlow's backends: the parts of repro.portable.backends.xla."""

    def calls_kernels(self) -> bool:
        """True if products are calls of repro.portable.kernels, where they can be."""

    def call(self, made: Any, dtype: str, shape: Axes, /, *arrays: Array) -> Array:
        """The array that kernels make of arrays: see repro.portable.kernels.calls."""

    def product_of_int8(self, a: Array, b: Array) -> Array:
        """The product of matrices of int8, [..., M, K] and [..., K, N] -> int32 [..., M, N]."""

    def correlate(self, x: Array, kernel: Array, /) -> Array:
        """[I, H, W, B], [h, w, I, O] -> [O, H - h + 1, W - w + 1, B], one matrix product."""

    def correlate_with(self, x: Array, gradient: Array, /) -> Array:
        """The gradient of correlate with respect to its kernel."""

    def spread(self, gradient: Array, kernel: Array, /) -> Array:
        """The gradient of correlate with respect to x."""
