"""The trainers' fast layers against their definitions: on small whole numbers all sums are exact."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from repro.frameworks import FRAMEWORKS
from support.runs import PROGRAMS, ROOT, needs, some

# Height and width of the kernel, rows and columns of the result, channels in and out. An image of one channel with an
# even number of both gives two by two results at once.
SHAPES = [(5, 3, 8, 6, 1, 4), (3, 3, 5, 4, 1, 2), (5, 4, 3, 8, 3, 2), (1, 2, 4, 4, 2, 3)]
BATCH = 6


def drawn(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Operands, and the gradients of results, of whole numbers."""
    height, width, rows, columns, inputs, outputs = shape
    draw = np.random.default_rng(0)
    shapes = {
        "x": (BATCH, rows + height - 1, columns + width - 1, inputs),
        "kernel": (height, width, inputs, outputs),
        "bias": (outputs,),
        "gradient": (BATCH, rows, columns, outputs),
        "image": (BATCH, 6, 8, inputs),
        "pooled": (BATCH, 3, 4, inputs),
    }
    return {name: draw.integers(-3, 4, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module", params=some(FRAMEWORKS, "pytorch", "jax", deep=["tensorflow"]))
def framework(request: pytest.FixtureRequest) -> str:
    needs(request.param)
    return request.param


@pytest.fixture(scope="module")
def computed(framework: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what tests/programs/native_layers.py makes of the arrays of each shape, in one process."""
    folder = tmp_path_factory.mktemp(framework)
    for number, shape in enumerate(SHAPES):
        save_file(drawn(shape), folder / f"{number}.given")
    python, program = ROOT / ".venv" / framework / "bin" / "python", PROGRAMS / "native_layers.py"
    env = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([str(python), "-s", "-P", str(program), framework, str(folder)], env=env, check=True)
    return folder


def convolved(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Valid convolution with bias, and its gradients, by their definition."""
    x, kernel, bias, gradient = (given[name] for name in ("x", "kernel", "bias", "gradient"))
    y, grad_x, grad_kernel = np.zeros_like(gradient) + bias, np.zeros_like(x), np.zeros_like(kernel)
    _, rows, columns, _ = gradient.shape
    for i, j in np.ndindex(kernel.shape[:2]):
        window = slice(None), slice(i, i + rows), slice(j, j + columns)
        y += x[window] @ kernel[i, j]
        grad_x[window] += gradient @ kernel[i, j].T
        grad_kernel[i, j] = np.tensordot(x[window], gradient, axes=([0, 1, 2], [0, 1, 2]))
    return {"y": y, "grad_x": grad_x, "grad_kernel": grad_kernel, "grad_bias": gradient.sum((0, 1, 2))}


def pooled(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The maximum of each 2 x 2 window; its gradient goes to the first of equals, row by row."""
    image, gradient = given["image"], given["pooled"]
    pool, grad_image = np.zeros_like(gradient), np.zeros_like(image)
    for b, i, j, c in np.ndindex(gradient.shape):
        window = image[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, c]
        row, column = divmod(int(window.argmax()), 2)
        pool[b, i, j, c] = window[row, column]
        grad_image[b, 2 * i + row, 2 * j + column, c] = gradient[b, i, j, c]
    return {"pool": pool, "grad_image": grad_image}


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_fast_layers_are_what_they_are_by_definition(framework: str, computed: Path, number: int) -> None:
    given = drawn(SHAPES[number])
    expected = convolved(given)
    if framework != "pytorch":  # whose pooling is its own
        expected |= pooled(given)
    result = load_file(computed / f"{number}.computed")
    assert result.keys() == expected.keys()
    assert [name for name in expected if not np.array_equal(result[name], expected[name])] == []
