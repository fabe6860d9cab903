"""Reference: what the self-check of a backend computes."""

from functools import cache

import numpy as np

import reference
from repro.portable.backends.checks.cases import EXPECTED, FACTOR, SGD, TITLES, adam, fingerprint, inputs
from repro.portable.numbers.constants import BITS, EPSILON


@cache
def expected() -> dict[str, tuple[np.ndarray, ...]]:
    """The results of the reference implementation, and products in int64."""
    given = inputs()
    (rounding,), (maximum,), (root,), (grid,) = (given[name] for name in ("rounding", "maximum", "root", "grid"))
    a, b, grids = map(reference.f64, given["scaled"])
    logits, labels = given["loss"]
    q, p = reference.grid(grid, (1,))
    residual, _ = reference.cross_entropy_gradients(logits, labels, np.ones((), np.float32), mean=False)
    inverse = reference.r32(1.0 / reference.f64(reference.r32(np.sqrt(reference.f64(root) + EPSILON))))
    return {
        **{name: (array,) for name, array in _products().items()},
        "rounding": (reference.f64(reference.r32(rounding * FACTOR)) * FACTOR,),
        "scaled": (reference.r32(a @ b * grids * 2.0 ** -(2 * BITS)),),
        "maximum": (reference.f64(reference.r32(maximum * FACTOR)).max(1, keepdims=True),),
        "root": (reference.f64(inverse) * FACTOR,),
        "grid": (q.astype(np.float32), p.astype(np.float32)),
        "loss": (reference.cross_entropy(logits, labels, mean=False), residual),
        "sgd": reference.sgd(*given["sgd"], **SGD),
        "adam": reference.adam(*given["adam"], **adam()),
    }


def _products() -> dict[str, np.ndarray]:
    given = {name: [array.astype(np.int64) for array in inputs()[name]] for name in list(TITLES)[:4]}
    images, kernel = given["convolution"]
    seen, gradient = given["kernel"]
    weights, result = given["images"]
    places = [(i, j) for i in range(5) for j in range(5)]
    grad_kernel, grad_images = np.zeros_like(kernel), np.zeros_like(images)
    for i, j in places:
        grad_kernel[:, i, j] = np.einsum("ohwb,ihwb->oi", gradient, seen[:, i : i + 8, j : j + 8])
        grad_images[:, i : i + 8, j : j + 8] += np.einsum("oi,ohwb->ihwb", weights[:, i, j], result)
    parts = [np.einsum("oi,ihwb->ohwb", kernel[:, i, j], images[:, i : i + 8, j : j + 8]) for i, j in places]
    return {
        "product": given["product"][0] @ given["product"][1],
        "convolution": np.sum(parts, axis=0),
        "kernel": grad_kernel,
        "images": grad_images,
    }


if __name__ == "__main__":  # writes them anew
    lines = [" ".join([name, *map(fingerprint, results)]) for name, results in expected().items()]
    EXPECTED.write_text("".join(f"{line}\n" for line in lines))
